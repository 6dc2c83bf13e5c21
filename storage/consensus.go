package storage

import (
	"context"
	"io"
)

// consensus is the replicated log as the rest of the store sees it: hashicorp/raft in production (raft.go). It is small
// so that a simulator can stand in its place. It hands committed entries to a stateMachine, in order, one at a time.
type consensus interface {
	// propose appends an entry and returns when it was applied on this replica. Any error means that the outcome is
	// unknown: the entry may still be applied, also much later. Only the leader can propose.
	propose(entry []byte) error
	// barrier returns when everything committed before was applied on this replica. Only the leader can ask.
	barrier() error
	// term returns the current term.
	term() uint64
	// leading tells whether this replica is the leader; changes receives (level-triggered) when that may have changed.
	leading() bool
	changes() <-chan struct{}
	// lastIndex returns the index of the last entry of the log.
	lastIndex() uint64
	// snapshot has the state machine captured and written, and compacts the log.
	snapshot() error
	// stop ends taking part; it returns when nothing is called any more, or ctx ends.
	stop(ctx context.Context) error
}

// stateMachine is what consensus feeds. Calls never overlap, those of capture.write apart.
type stateMachine interface {
	// apply takes a committed entry.
	apply(index, term uint64, entry []byte)
	// capture returns the state as it is; it must be quick, since nothing is applied meanwhile.
	capture() (capture, error)
	// restore replaces the state by what capture.write wrote; on an error the state is as before.
	restore(r io.Reader) error
}

// capture is a state at one index, written while the machine goes on.
type capture interface {
	write(w io.Writer) error
}
