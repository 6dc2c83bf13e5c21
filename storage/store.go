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

// Open opens a data directory, or makes a new one, and returns when the machine has everything that the log has and
// this replica can propose. The error says what is wrong with the directory and what to do.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	dir, err := openDirectory(o.Dir, o.Replica, o.Version)
	if err != nil {
		return nil, fmt.Errorf("open storage: %w%s", err, cureOfOpening(err))
	}
	s := assemble(o, dir)
	if err := s.start(ctx); err != nil {
		s.closed.Store(true)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		cure := cureOfOpening(err)
		if cause := s.Err(); cause != nil { // raft hides what it wraps; the cause also has its cure
			err, cure = cause, ""
		}
		return nil, errors.Join(fmt.Errorf("open storage: %w%s", err, cure), s.release(stop))
	}
	return s, nil
}

// closeGrace bounds cleaning up after an open that failed.
const closeGrace = 5 * time.Second

func assemble(o Options, dir *directory) *Store {
	s := &Store{options: o, logger: o.Logger, dir: dir, quit: make(chan struct{}), failed: make(chan struct{})}
	begin := time.Now()
	monotonic := func() time.Duration { return time.Since(begin) + 1 }
	s.queue = newQueue(monotonic)
	s.watchers = newWatchers()
	s.out = newDispatcher(s.queue, s.watchers)
	s.replica = &replica{cluster: s.Cluster, queue: s.queue, out: s.out, fail: s.fail, machine: fsm.New()}
	s.replica.level.Store(fsm.LevelFirst)
	s.guard = &guard{fail: s.fail, cutAt: s.snapStore().cutAt, history: &history{limit: o.History, least: o.keepEntries}}
	s.plain = &lane{}
	s.batcher = &batcher{
		queue: s.queue, replica: s.replica, clock: clock{monotonic: monotonic}, observe: s.observe,
		ready: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if o.Cluster != nil {
		s.join()
	}
	s.snapshots = &snapshotter{each: o.snapshotEach, store: s, quit: make(chan struct{}), done: make(chan struct{})}
	go s.out.run()
	go s.watchers.run()
	return s
}

// start brings the replica to life: the log first, then what is in it, then the proposer.
func (s *Store) start(ctx context.Context) error {
	tag, err := random()
	if err != nil {
		return err
	}
	s.plain.next = tag >> 1
	if !s.dir.fresh {
		if err := s.examine(); err != nil {
			return err
		}
	}
	if s.vault, err = openVault(s.dir.path, s.fail); err != nil {
		return err
	}
	s.vault.start()
	s.replica.vault = s.vault
	bolt, err := s.dir.openLog()
	if err != nil {
		return err
	}
	s.file = bolt
	s.guard.logFile = bolt
	if s.options.wrap != nil {
		s.guard.logFile = s.options.wrap(bolt)
	}
	s.guard.logFile = s.dir.sealing(s.guard.logFile)
	s.helper.Go(func() { s.guard.watch(s.options.hungAfter, s.quit) })
	parts := &raftParts{
		group:   s.group,
		replica: s.options.Replica, logs: s.guard, snaps: s.snapStore(), machine: s.replica, logger: s.logger, trailing: s.options.keepEntries,
	}
	if err := s.prepare(ctx, parts); err != nil {
		return err
	}
	l, err := startRaft(parts)
	if l != nil {
		s.log, s.batcher.log = l, l
		go s.batcher.run()
		if s.group != nil {
			s.group.start(l)
		}
	}
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	if s.Err() != nil {
		return s.cause
	}
	if err := s.consistent(); err != nil {
		return err
	}
	go s.snapshots.run()
	return nil
}

// consistent refuses a state that breaks the machine's invariants, before anybody builds on it.
func (s *Store) consistent() (err error) {
	s.replica.view(func(m *fsm.Machine) {
		if err = m.Check(); err != nil {
			err = fmt.Errorf("%w: the state in %s at entry %d is not consistent: %w; restore the directory from a backup, and report it with a copy of the directory",
				ErrDamaged, s.dir.path, m.Index(), err)
		}
	})
	return err
}

// examine refuses a directory that is damaged, before anything in it is changed.
func (s *Store) examine() error {
	snapshot, err := s.dir.identity.examine(s.dir.path)
	if err != nil {
		return err
	}
	if snapshot != nil {
		s.snapshots.taken.Store(snapshot.Index)
	}
	return nil
}

func (s *Store) snapStore() *snapStore {
	x := &snapStore{dir: s.dir.path, first: func() (uint64, error) { return s.guard.FirstIndex() }}
	if s.group != nil {
		x.cluster, x.log, x.vault = s.Cluster(), s.guard, s.vault
	}
	return x
}

// prepare bootstraps a new directory, and finds out what history an old one has.
func (s *Store) prepare(ctx context.Context, parts *raftParts) error {
	if s.dir.fresh {
		return s.firstStart(ctx, parts)
	}
	if name := installed(s.guard); name != "" && s.group != nil {
		if err := s.finishInstall(name); err != nil {
			return err
		}
	}
	if s.group != nil {
		s.group.serve()
	}
	first, last, err := s.bounds()
	if err != nil {
		return err
	}
	return s.guard.history.load(s.guard, first, last)
}

// firstStart begins a log: that of a new cluster, or none yet if the others have one.
func (s *Store) firstStart(ctx context.Context, parts *raftParts) error {
	p, err := s.plan(ctx)
	if err != nil {
		return err
	}
	state := stateJoining
	if p.bootstrap != nil {
		state = stateReady
		if err := bootstrapRaft(parts, p.bootstrap); err != nil {
			return fmt.Errorf("first start: %w", err)
		}
	}
	id := *s.dir.identity
	id.Cluster = p.cluster
	if err := id.bind(s.guard); err != nil {
		return err
	}
	if err := s.dir.become(p.cluster, state); err != nil {
		return err
	}
	parts.snaps = s.snapStore() // it knows the cluster now
	return nil
}

// plan says what an empty directory is made into.
func (s *Store) plan(ctx context.Context) (*plan, error) {
	self := Member{ID: s.options.Replica, Address: s.options.Replica, Voter: true}
	if s.group != nil {
		if len(s.group.others()) > 0 {
			return s.group.form(ctx)
		}
		if self.Address = s.options.Cluster.Address; self.Address == "" {
			self.Address = self.ID
		}
		defer s.group.serve()
	}
	if s.dir.identity.State == stateForming { // it had peers when it was started before
		id, err := mintIdentity(s.options.Replica, s.options.Version)
		if err != nil {
			return nil, err
		}
		return &plan{cluster: id.Cluster, bootstrap: []Member{self}}, nil
	}
	return &plan{cluster: s.dir.identity.Cluster, bootstrap: []Member{self}}, nil
}

// finishInstall removes a log that the leader's snapshot took the place of when a crash came in between.
func (s *Store) finishInstall(name string) error {
	index, ok := snapshotIndex(name)
	last, err := s.guard.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if !ok || last >= index || s.snapshots.taken.Load() != index {
		return nil
	}
	return replaceLog(s.guard)
}

func (s *Store) bounds() (first, last uint64, err error) {
	if first, err = s.guard.FirstIndex(); err == nil {
		last, err = s.guard.LastIndex()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the log: %w", err)
	}
	return first, last, nil
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

// Close ends the store in an orderly way: new commands get ErrClosed, those under way their outcome; a snapshot is
// written if many entries came since the last; then the directory is let go. ctx bounds it. After a failure it only
// lets go.
func (s *Store) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.queue.close(ErrClosed, false)
	var errs []error
	if s.Err() == nil {
		if err := s.drain(ctx); err != nil {
			errs = append(errs, fmt.Errorf("wait for commands under way: %w", err))
		}
	}
	if s.Err() == nil && s.group != nil {
		s.group.handOver(ctx)
	}
	if err := s.snapshots.stop(ctx); err != nil {
		errs = append(errs, err)
	} else if s.Err() == nil && s.log.lastIndex() > s.snapshots.taken.Load()+closeEntries {
		errs = append(errs, s.snapshots.take())
	}
	errs = append(errs, s.release(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}

// drain waits until all commands under way have their outcome. Without a leader they get none: then it is given up after as
// long as anybody waits for one, which is no fault of this replica.
func (s *Store) drain(ctx context.Context) error {
	if s.group == nil {
		return s.queue.drain(ctx, nil)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.queue.drain(waiting, nil) }()
	ticker := time.NewTicker(keepEach)
	defer ticker.Stop()
	for without := time.Duration(0); without < leaderless; {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			if without += keepEach; s.group.log.leader() != "" {
				without = 0
			}
		}
	}
	cancel()
	if err := <-done; err == nil {
		return nil // the last outcome came just now
	}
	s.logger.Warn("closed without a leader: commands under way have no outcome here")
	return nil
}

// release stops everything that runs and lets the directory go. If something does not return from the disk, it gives
// up when ctx ends and leaves file and lock to the end of the process.
func (s *Store) release(ctx context.Context) error {
	close(s.quit)
	if s.group != nil {
		s.group.quit()
	}
	err := s.stopLog(ctx)
	if s.group != nil {
		s.group.stop(err == nil)
	}
	s.abandon()
	if err != nil {
		if s.vault != nil {
			s.vault.abandon()
		}
		return err
	}
	if s.vault != nil {
		if err = s.vault.stop(s.replica.applied.Load()); err != nil {
			err = fmt.Errorf("%w%s", err, cureOf(err))
		}
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return errors.Join(err, s.dir.close())
}

// stopLog stops the proposer, then the log.
func (s *Store) stopLog(ctx context.Context) error {
	if s.log == nil {
		return nil
	}
	if errors.Is(s.Err(), errHung) {
		return s.cause
	}
	close(s.batcher.quit)
	select {
	case <-s.batcher.done:
	case <-ctx.Done():
		return fmt.Errorf("wait for the entry under way: %w", ctx.Err())
	}
	return s.log.stop(ctx)
}

// abandon answers who still waits, and ends the goroutines that do not touch the disk.
func (s *Store) abandon() {
	why := ErrClosed
	if s.Err() != nil {
		why = ErrFailed
	}
	var h handover
	for _, b := range s.queue.close(why, true) {
		h.answers = append(h.answers, answer{batch: b, err: why})
	}
	s.out.hand(h)
	s.out.stop()
	s.watchers.stop()
	s.helper.Wait()
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
	return st
}

// counts are what the batcher has written.
type counts struct{ entries, commands, bytes atomic.Uint64 }
