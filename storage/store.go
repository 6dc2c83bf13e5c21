package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// Store is an open data directory: the log, the machine that it is applied to, and those who propose and watch.
type Store struct {
	options   Options
	logger    *slog.Logger
	dir       *directory
	file      logFile // behind guard
	guard     *guard
	log       consensus
	replica   *replica
	queue     *queue
	out       *dispatcher
	watchers  *watchers
	vault     *vault
	batcher   *batcher
	snapshots *snapshotter
	plain     *lane  // of commands without a session
	group     *group // nil = alone for ever

	quit   chan struct{}
	helper sync.WaitGroup // goroutines that end with quit
	closed atomic.Bool

	failOnce sync.Once
	failed   chan struct{}
	cause    error // set before failed is closed
}

// put queues a command, or has the dispatcher tell why not.
func (s *Store) put(l *lane, cmd fsm.Command, to Receiver, hurry bool) {
	err := tooLarge(cmd)
	if err == nil {
		err = s.understood(cmd)
	}
	if err == nil {
		err = s.queue.put(l, cmd, to, hurry)
	}
	if err == nil {
		return
	}
	if errors.Is(err, ErrOverloaded) {
		s.observe(Stat{Kind: StatOverloaded, Commands: 1})
	}
	if !s.out.hand(handover{answers: []answer{{to: to, err: err}}}) {
		to.Receive(fsm.Outcome{}, err) // closed: the dispatcher has gone
	}
}

func (s *Store) do(ctx context.Context, l *lane, cmd fsm.Command) (fsm.Outcome, error) {
	w := newWaiter()
	s.put(l, cmd, w, true)
	return w.wait(ctx)
}

// Do has a command of no session carried out and waits for its outcome: EndSession, Drain, ApplyConfig. If ctx ends
// first, it may still take effect.
func (s *Store) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	return s.do(ctx, s.plain, cmd)
}

// View calls fn with the machine, which must not be changed or kept; nothing is applied meanwhile, so fn must be short.
func (s *Store) View(fn func(*fsm.Machine)) { s.replica.view(fn) }

// Watch returns a channel with room for n effects that gets all effects from now on. Who does not read misses some; the
// store never waits. The channel is closed when ctx ends or the store closes.
func (s *Store) Watch(ctx context.Context, n int) <-chan fsm.Effect { return s.watchers.add(ctx, n) }

// Pending returns how many requests wait for a slot.
func (s *Store) Pending() int { return int(s.replica.pending.Load()) }

// Role returns what this replica is at the moment.
func (s *Store) Role() Role {
	switch {
	case s.closed.Load() || s.Err() != nil:
		return RoleStopped
	case s.group != nil && s.group.running.Load() == nil:
		return RoleFollower
	case s.log.leading():
		return RoleLeader
	}
	return RoleFollower
}

// Cluster returns the id of the cluster, minted at its first start; "" before that.
func (s *Store) Cluster() string {
	id, empty := s.membership()
	if empty && s.group != nil {
		return ""
	}
	return id
}

// membership returns the id of the cluster, or what an empty replica would add to one.
func (s *Store) membership() (id string, empty bool) {
	s.dir.mu.Lock()
	defer s.dir.mu.Unlock()
	if s.dir.identity.State == stateNew && s.group != nil {
		return "", true
	}
	return s.dir.identity.Cluster, s.dir.identity.State == stateForming
}

// Failed is closed when the store can't go on: a write failed or does not return, or the log holds what this version
// can't read. Nothing is acknowledged any more; the process has to end. Err tells why.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err returns why the store failed and what to do, nil as long as it did not.
func (s *Store) Err() error {
	select {
	case <-s.failed:
		return s.cause
	default:
		return nil
	}
}

// fail ends the store: what is under way gets ErrFailed, whatever becomes of it on disk.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		s.cause = fmt.Errorf("storage in %s failed: %w%s", s.options.Dir, err, cureOf(err))
		s.logger.Error("storage failed", "dir", s.options.Dir, "error", s.cause)
		close(s.failed)
		var h handover
		for _, b := range s.queue.close(ErrFailed, true) {
			h.answers = append(h.answers, answer{batch: b, err: ErrFailed})
		}
		s.out.fail(h)
	})
}

func (s *Store) observe(st Stat) {
	if s.options.Observe != nil {
		s.options.Observe(st)
	}
}

// Stats returns the figures of the store.
func (s *Store) Stats() Stats {
	st := Stats{
		Role: s.Role(), Applied: s.replica.applied.Load(), SnapshotIndex: s.snapshots.taken.Load(),
		Entries: s.batcher.counts.entries.Load(), Commands: s.batcher.counts.commands.Load(),
		Bytes: s.batcher.counts.bytes.Load(), Snapshots: s.snapshots.count.Load(),
		Capture: time.Duration(s.replica.captured.Load()),
	}
	st.QueuedBytes, st.Overloaded = s.queue.figures()
	if st.Role != RoleStopped {
		st.Term = s.log.term()
		if first, last, err := s.bounds(); err == nil {
			st.FirstIndex, st.LastIndex = first, last
		}
	}
	if info, err := os.Stat(s.dir.file(logDB)); err == nil {
		st.LogFileBytes = info.Size()
	}
	st.SnapshotBytes, st.SnapshotAt = s.snapStore().figures()
	st.Missed = s.watchers.missed.Load()
	return st
}

// counts are what the batcher has written.
type counts struct{ entries, commands, bytes atomic.Uint64 }
