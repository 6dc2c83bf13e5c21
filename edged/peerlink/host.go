package peerlink

import (
	"context"
	"errors"
)

// Member is a replica.
type Member struct {
	ID      string
	Address string // host:port of its cluster listener
	Voter   bool
}

// Standing is how a replica stands at one moment, by its own word.
type Standing struct {
	ID, Cluster, Leader, LeaderAddress, Role string
	Empty                                    bool
	Applied, Last, Term                      uint64
	Level, LevelMax                          uint32
	Version                                  string
	Members                                  []Member
}

// Change is a change of the membership; exactly one of Remove and Transfer is set.
type Change struct {
	Remove   string // take this replica out
	Transfer bool   // hand leadership over
	To       string // of Transfer: the next leader; "" = the one that is furthest
}

// Verdict is what a replica says to batches that came over a lane.
type Verdict uint8

// The verdicts.
const (
	VerdictAccepted   Verdict = iota + 1 // taken, in the order they came
	VerdictNotLeader                     // not taken: this replica does not lead
	VerdictOverloaded                    // not taken: send again a little later
)

func (v Verdict) String() string {
	switch v {
	case VerdictAccepted:
		return "accepted"
	case VerdictNotLeader:
		return "not_leader"
	case VerdictOverloaded:
		return "overloaded"
	}
	return "unknown"
}

// Host answers what other replicas ask. Its methods are called from many goroutines at once.
type Host interface {
	// Cluster returns the id of the cluster that this replica is of, "" while it is of none.
	Cluster() string
	// Forwarded takes batches, in the order of each lane; it owns the bytes. It may hold up its lane, and no other.
	Forwarded(batches []byte) Verdict
	// ReadIndex returns an index to read at. Errors: ErrNotLeader, ErrOverloaded, or any other.
	ReadIndex(ctx context.Context) (index, term uint64, err error)
	// Standing tells how the replica stands; it answers at once.
	Standing() Standing
	// Join takes a replica in. Errors as of ReadIndex.
	Join(ctx context.Context, m Member) error
	// Change changes the membership. Errors as of ReadIndex.
	Change(ctx context.Context, c Change) error
	// Digest returns the digest of the state right after a mark in the log, once that is applied.
	Digest(ctx context.Context, mark [32]byte) (index uint64, digest [32]byte, err error)
}

var (
	// ErrNotLeader says that the replica asked does not lead.
	ErrNotLeader = errors.New("the replica does not lead")
	// ErrOverloaded says that the replica asked has too much to do; try again a little later.
	ErrOverloaded = errors.New("the replica is overloaded")
	// ErrRefused says that one end does not want the other: another cluster, another replica, another protocol. The text
	// has the cause and a cure.
	ErrRefused = errors.New("refused")
	// ErrTwin says that the replica runs elsewhere too: one of the two is a copy.
	ErrTwin = errors.New("one replica id twice")
	// ErrUnreachable says that the replica asked could not be reached, or that the way to it broke.
	ErrUnreachable = errors.New("the replica can't be reached")
	// ErrStarting says that the replica asked has just begun and can't answer yet.
	ErrStarting = errors.New("the replica is starting")
	// ErrClosed says that this end has stopped.
	ErrClosed = errors.New("peerlink is closed")
)
