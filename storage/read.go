package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// A linearizable read: the leader names the last command that is committed, makes sure that it still is the leader, and
// the replica that reads waits until it has applied that much.

// Barrier returns when this replica has applied everything that anybody anywhere had the outcome of before the call;
// what View shows from then on is as new as that. It needs a leader. index is what the state has at least.
func (s *Store) Barrier(ctx context.Context) (index uint64, err error) {
	index, _, err = s.ReadIndex(ctx)
	if errors.Is(err, ErrNotLeader) && s.group != nil {
		index, err = s.group.askLeader(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	if err := s.replica.waits.wait(ctx, index); err != nil {
		return 0, fmt.Errorf("wait for entry %d: %w", index, err)
	}
	return index, nil
}

// askLeader asks the leader for an index to read at.
func (g *group) askLeader(ctx context.Context) (uint64, error) {
	leader := g.log.leader()
	to, ok := g.book.find(leader)
	if !ok || leader == g.store.options.Replica {
		return 0, ErrNoLeader
	}
	index, _, err := g.options.Network.ReadIndex(ctx, to)
	return index, err
}

// ReadIndex returns the index that a linearizable read has to wait for, and the term in which it is valid. Only the
// leader can: ErrNotLeader. Calls that come while one is under way share the next round.
func (s *Store) ReadIndex(ctx context.Context) (index, term uint64, err error) {
	if s.group == nil { // alone: what is applied is all that anybody knows of
		return s.replica.applied.Load(), s.log.term(), nil
	}
	if !s.leads() {
		return 0, 0, s.notLeader()
	}
	r := s.group.reads.join(s.verify)
	select {
	case <-r.done:
		return r.index, r.term, r.err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// verify is one round.
func (s *Store) verify() (index, term uint64, err error) {
	term = s.batcher.ledTerm.Load()
	if term == 0 || s.log.term() != term {
		return 0, 0, s.notLeader()
	}
	if index, err = s.group.lastCommand(); err != nil {
		return 0, 0, err
	}
	if err := s.group.log.raft.VerifyLeader().Error(); err != nil || s.batcher.ledTerm.Load() != term || s.log.term() != term {
		return 0, 0, errors.Join(s.notLeader(), err)
	}
	return index, term, nil
}

// lastCommand returns the index of the last committed command: what raft itself writes never reaches the machine, so
// nobody could wait for it.
func (g *group) lastCommand() (uint64, error) {
	commit, applied := g.log.raft.CommitIndex(), g.store.replica.applied.Load()
	for i := commit; i > applied; i-- {
		var l raft.Log
		if err := g.store.guard.GetLog(i, &l); err != nil {
			return 0, fmt.Errorf("read log entry %d: %w", i, err)
		}
		if l.Type == raft.LogCommand {
			return i, nil
		}
	}
	return applied, nil
}

// leads tells whether this replica, one that can have others, is the leader and can propose. It may be asked from the
// moment that Serve is called.
func (s *Store) leads() bool {
	if s.group == nil || s.closed.Load() {
		return false
	}
	log := s.group.running.Load()
	return log != nil && log.leading() && s.batcher.ledTerm.Load() != 0
}

func (s *Store) notLeader() error {
	if s.group == nil {
		return ErrNotLeader
	}
	log := s.group.running.Load()
	if log == nil {
		return ErrNotLeader
	}
	leader := log.leader()
	if leader == "" || leader == s.options.Replica {
		return fmt.Errorf("%w: %w", ErrNotLeader, ErrNoLeader)
	}
	m, _ := s.group.book.find(leader)
	return fmt.Errorf("%w: that is %s at %s", ErrNotLeader, leader, m.Address)
}

// reads has one round under way and at most one waiting behind it.
type reads struct {
	mu    sync.Mutex
	busy  bool
	next  *readRound
	group sync.WaitGroup
}

type readRound struct {
	done        chan struct{}
	index, term uint64
	err         error
}

// join returns the next round to begin; it runs fn.
func (r *reads) join(fn func() (uint64, uint64, error)) *readRound {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &readRound{done: make(chan struct{})}
	}
	mine := r.next
	if !r.busy {
		r.busy = true
		r.group.Go(func() { r.run(fn) })
	}
	return mine
}

func (r *reads) run(fn func() (uint64, uint64, error)) {
	for {
		r.mu.Lock()
		round := r.next
		r.next = nil
		if r.busy = round != nil; !r.busy {
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		round.index, round.term, round.err = fn()
		close(round.done)
	}
}
