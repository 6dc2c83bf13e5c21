package storage

import "time"

// StatKind tells what a Stat is about.
type StatKind uint8

// The kinds of Stat.
const (
	StatEntry      StatKind = iota + 1 // an entry of this replica was written and applied
	StatSnapshot                       // a snapshot was written
	StatOverloaded                     // a command was refused as overloaded
	StatSync                           // entries were written to the log, with fsync
)

// Stat is one observation for metrics.
type Stat struct {
	Kind     StatKind
	Commands int           // of an entry
	Bytes    int64         // of an entry or a snapshot
	Wait     time.Duration // of an entry: how long its oldest command was queued
	Took     time.Duration // from proposing the entry to having it applied; or of writing the snapshot; or of writing to the log
	Apply    time.Duration // of an entry: how long the machine took over it, or over one close to it
	Capture  time.Duration // of a snapshot: how long applying stood still
}

// Stats are the store's figures at one moment.
type Stats struct {
	Role          Role
	Term          uint64
	Applied       uint64 // index of the last entry applied
	FirstIndex    uint64 // of the log; 0 = empty
	LastIndex     uint64
	SnapshotIndex uint64 // of the newest snapshot; 0 = none
	Entries       uint64 // written since the start
	Commands      uint64 // in them
	Bytes         uint64 // in them
	QueuedBytes   int64  // of commands whose outcome was not delivered yet
	Overloaded    uint64 // commands refused since the start
	Snapshots     uint64 // written since the start
	SnapshotBytes int64
	SnapshotAt    time.Time // when the newest was written; zero = there is none
	Missed        uint64    // effects that watchers missed since the start
	LogFileBytes  int64
	Capture       time.Duration // of the last snapshot: how long applying stood still
}

// Role is what this replica is in its cluster.
type Role uint8

// The roles.
const (
	RoleFollower Role = iota
	RoleLeader
	RoleStopped
)

func (r Role) String() string {
	switch r {
	case RoleLeader:
		return "leader"
	case RoleStopped:
		return "stopped"
	}
	return "follower"
}
