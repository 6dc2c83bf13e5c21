package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"iop/fsm"
)

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
	s.guard.synced = func(took time.Duration) { s.observe(Stat{Kind: StatSync, Took: took}) }
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
		s.logger.Info("the data directory is empty and no other replica is named: this one begins a cluster of its own",
			"cure", "to come into a cluster that there is: stop, empty the directory, and name its replicas in edge.cluster.peers")
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
