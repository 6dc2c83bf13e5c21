package storage

import (
	"context"
	"net"
	"time"
)

// Cluster is what a replica needs to be one of several. Options.Cluster nil = alone, without any network.
type Cluster struct {
	Address    string        // where the others reach this replica: host:port of its cluster listener
	Peers      []Member      // all replicas of the first start, this one among them; empty = it starts alone and can grow
	Network    Network       // how to reach them
	SessionTTL time.Duration // the sessions of a replica that was not heard of for so long are ended; 0 = 3 s
	// Serve is called once, by Open and before it asks anybody: from then on the other replicas may call Standing, Join,
	// ReadIndex and Forwarded, although Open returns only when this replica has caught up. nil = nobody is served.
	Serve    func(*Store)
	LevelMax uint32 // newest feature level that this program may use; 0 = all it knows. Tests hold a replica back with it
}

// Member is one replica of a cluster. Two with the same ID are the same replica, whatever their address.
type Member struct {
	ID      string
	Address string // host:port of its cluster listener
	Voter   bool   // counts for the majority; one that is joining does not until it has caught up
}

// Network is how the store reaches the other replicas. Whoever implements it proves to both ends who the other is, and
// bounds what it keeps. Every call may fail at any time; the store tries again.
type Network interface {
	// Raft returns the listener of raft's connections that others opened, already authenticated.
	Raft() net.Listener
	// DialRaft opens a connection for raft.
	DialRaft(ctx context.Context, to Member) (net.Conn, error)
	// Forward opens a stream of batches to a replica, which is taken to be the leader. ctx bounds only the opening.
	Forward(ctx context.Context, to Member) (Lane, error)
	// Standing asks a replica how it stands: Store.Standing there.
	Standing(ctx context.Context, to Member) (Standing, error)
	// ReadIndex asks a replica, which is taken to be the leader, for an index to read at: Store.ReadIndex there.
	ReadIndex(ctx context.Context, to Member) (index, term uint64, err error)
	// Join asks a replica, which is taken to be the leader, to take self into the cluster: Store.Join there.
	Join(ctx context.Context, to Member, self Member, cluster string) error
	// Change asks a replica, which is taken to be the leader, to change the membership: Store.Changed there.
	Change(ctx context.Context, to Member, c Change) error
	// Digest asks a replica for the digest of its state right after a mark in the log: Store.Digest there.
	Digest(ctx context.Context, to Member, mark Mark) (index uint64, digest [32]byte, err error)
}

// Lane carries batches to the leader. One goroutine may send while another receives; Close ends both.
type Lane interface {
	// Send sends batches, opaque bytes of less than LaneBytesMax. It may block until the other side takes more.
	Send(batches []byte) error
	// Recv returns one verdict per Send, in the same order.
	Recv() (Verdict, error)
	Close() error
}

// LaneBytesMax is above what one Send carries: one command of the largest size, or a full entry.
const LaneBytesMax = 9 << 20

// Verdict is what a replica says to batches that came over a Lane. It is never an outcome.
type Verdict uint8

// The verdicts.
const (
	VerdictAccepted   Verdict = iota + 1 // queued in the order they came
	VerdictNotLeader                     // not taken: this replica does not lead, or not yet
	VerdictOverloaded                    // not taken: too much is queued here; send again a little later
)

func (v Verdict) String() string {
	switch v {
	case VerdictAccepted:
		return "accepted"
	case VerdictNotLeader:
		return "not leader"
	case VerdictOverloaded:
		return "overloaded"
	}
	return "unknown"
}

// Standing is how a replica stands at one moment, by its own word.
type Standing struct {
	ID            string
	Cluster       string // id of its cluster. Of an empty replica: what it adds to the id of a cluster that is being formed
	Leader        string // id of the replica that it takes for the leader; empty = none
	LeaderAddress string
	Role          string   // leader, follower, candidate, joining, forming, stopped
	Empty         bool     // it never was part of a cluster
	Applied       uint64   // index of the last entry applied
	Last          uint64   // index of the last entry of its log
	Behind        uint64   // entries of its log that it has not applied yet; only of this process's own
	Term          uint64   // of the log
	Level         uint32   // feature level of the state
	LevelMax      uint32   // newest one that its program knows
	Version       string   // of its program
	Members       []Member // by id, as it knows them; of an empty replica: those of its configuration
}
