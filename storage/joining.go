package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// unknownTimes is how often in a row a leader must say that it does not know this replica: its newest members may not be
// confirmed yet.
const unknownTimes = 2

// lookEach is how often a replica without a leader asks around.
const lookEach = time.Second

// follow is what the others do: find out whether the cluster knows this replica, and where it is.
func (g *group) follow() {
	m, known := g.book.find(g.store.options.Replica)
	leader := g.log.leader()
	logged := g.book.logged()
	i := find(logged, m.ID)
	moved := known && leader != "" && i >= 0 && logged[i].Address != g.options.Address
	if leader != "" && !moved || time.Since(g.askedAt) < lookEach {
		return
	}
	g.askedAt = time.Now()
	for _, s := range g.ask() {
		if s.Empty || s.Cluster != g.store.Cluster() || s.Leader == "" {
			continue
		}
		i := find(s.Members, g.store.options.Replica)
		switch {
		case i < 0 && s.ID == s.Leader:
			if g.unknown++; g.unknown >= unknownTimes {
				g.store.fail(ErrRemoved)
			}
			return
		case i >= 0 && s.ID == s.Leader && s.Members[i].Address == g.options.Address:
			g.unknown = 0
		case i >= 0 && s.Members[i].Address != g.options.Address:
			g.unknown = 0
			_ = g.join(s) // it says why; the next round tries again
			return
		}
	}
}

// ask returns how all the others stand, as far as they answer.
func (g *group) ask() []Standing {
	list := g.book.all()
	for _, p := range g.others() {
		if find(list, p.ID) < 0 {
			list = append(list, p)
		}
	}
	answers := make([]*Standing, len(list))
	var wait sync.WaitGroup
	for i, m := range list {
		if m.ID == g.store.options.Replica {
			continue
		}
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(g.ctx, transportTimeout)
			defer cancel()
			if s, err := g.options.Network.Standing(ctx, m); err == nil {
				answers[i] = &s
			} else {
				g.logger.Debug("replica does not answer", "replica", m.ID, "error", err)
			}
		})
	}
	wait.Wait()
	var out []Standing
	for _, a := range answers {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// join asks the leader that a replica names to take this one in, or to note its address.
func (g *group) join(s Standing) error {
	if s.Leader == "" {
		return ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(g.ctx, 2*transportTimeout)
	defer cancel()
	to := Member{ID: s.Leader, Address: s.LeaderAddress}
	if m, ok := g.book.find(s.Leader); ok && to.Address == "" {
		to = m
	}
	g.book.expect(to)
	err := g.options.Network.Join(ctx, to, Member{ID: g.store.options.Replica, Address: g.options.Address}, s.Cluster)
	switch {
	case errors.Is(err, ErrTwin):
		g.store.fail(err)
	case err != nil:
		if g.untaken.speak(s.Leader + ": " + err.Error()) {
			g.logger.Warn("the leader does not take this replica in yet", "leader", s.Leader, "error", err)
		}
	}
	return err
}

// awaitReady waits until this replica leads, or has applied what the leader had.
func (s *Store) awaitReady(ctx context.Context) error {
	ready := make(chan error, 1)
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.group != nil {
		s.group.tasks.Go(func() { s.group.catchUp(watch, ready) })
	}
	select {
	case <-s.batcher.ready:
	case err := <-ready:
		if err != nil {
			return err
		}
	case <-s.failed:
		return s.cause
	case <-ctx.Done():
		return fmt.Errorf("wait for the log: %w", ctx.Err())
	}
	if s.group != nil && s.dir.identity.State == stateJoining {
		return s.dir.ready()
	}
	return nil
}

// catchUp waits until this replica has applied everything that was acknowledged anywhere when it began to look.
func (g *group) catchUp(ctx context.Context, ready chan<- error) {
	told := time.Now()
	for ctx.Err() == nil && g.ctx.Err() == nil {
		index, err := g.askLeader(ctx)
		if err == nil {
			if g.store.replica.waits.wait(ctx, index) == nil {
				ready <- nil
				return
			}
			continue
		}
		if time.Since(told) > formTell {
			told = time.Now()
			g.logger.Info("waiting for a leader", "members", g.book.all(), "error", err)
		}
		select {
		case <-time.After(askEach / 2):
		case <-ctx.Done():
		case <-g.ctx.Done():
		}
	}
}

// join makes a store that has a network able to be one of several.
func (s *Store) join() {
	s.group = newGroup(s, *s.options.Cluster)
	s.replica.told = func(index, term uint64) {
		if s.batcher.ledTerm.Load() == term {
			s.group.peers.applied(index, term)
		}
	}
	s.replica.digests = &digests{each: s.options.checkEach, cluster: s.Cluster, dir: s.dir.path, fail: s.fail, own: map[uint64]*digested{}, computed: s.proposeCheck}
	s.replica.missed = func() {
		s.replica.digests.jumped()
		s.group.endOwn()
	}
}
