package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// ErrAlone says that the store was opened without a network.
var ErrAlone = errors.New("this replica was started alone; give it a cluster listener")

// Join takes a replica into the cluster, without a vote until it has caught up, or notes its new address. Only the
// leader can: ErrNotLeader. It returns when the log says so.
func (s *Store) Join(ctx context.Context, m Member) error {
	if err := s.canChange(); err != nil {
		return err
	}
	if m.ID == "" || m.Address == "" {
		return errors.New("join: a replica needs an id and an address")
	}
	for _, known := range s.group.book.logged() {
		switch {
		case known.ID != m.ID && known.Address == m.Address:
			return fmt.Errorf("join: %s is the address of replica %s; remove that first, or give %s its own", m.Address, known.ID, m.ID)
		case known.ID == m.ID && known.Address == m.Address:
			return nil
		case known.ID == m.ID:
			if err := s.group.twin(ctx, known, m); err != nil {
				s.logger.Warn("a replica that says it has moved is refused", "replica", m.ID, "error", err)
				return err
			}
		}
	}
	s.group.book.expect(m)
	f := s.group.log.raft.AddNonvoter
	if known, ok := s.group.book.find(m.ID); ok && known.Voter {
		f = s.group.log.raft.AddVoter // a new address; it keeps its vote
	}
	return s.group.await(ctx, "take replica "+m.ID+" in", f(raft.ServerID(m.ID), raft.ServerAddress(m.Address), 0, 0))
}

// TakeIn has the leader take a replica in, whichever replica that is; it gets a vote when it has caught up. ErrNoLeader:
// there was none until ctx ended.
func (s *Store) TakeIn(ctx context.Context, m Member) error {
	for {
		err := s.Join(ctx, m)
		if errors.Is(err, ErrNotLeader) && s.group.running.Load() != nil {
			if to, ok := s.group.book.find(s.group.log.leader()); ok && to.ID != s.options.Replica {
				err = s.group.options.Network.Join(ctx, to, m, s.Cluster())
			}
		}
		if !passing(err) {
			return err
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
	}
}

// AddMember takes a replica in and returns when it has caught up and votes. A follower has the leader do it. If ctx ends
// first, it goes on.
func (s *Store) AddMember(ctx context.Context, m Member) error {
	if err := s.TakeIn(ctx, m); err != nil {
		return err
	}
	return s.group.until(ctx, "wait until replica "+m.ID+" has caught up", func() bool {
		i := find(s.group.book.logged(), m.ID)
		return i >= 0 && s.group.book.logged()[i].Voter
	})
}

// RemoveMember takes a replica out of the cluster; its process ends with ErrRemoved. Only the leader can: ErrNotLeader.
// A leader that is to go itself hands leadership over first, and then says ErrNotLeader: ask the new one.
func (s *Store) RemoveMember(ctx context.Context, id string) error {
	if err := s.canChange(); err != nil {
		return err
	}
	logged := s.group.book.logged()
	i := find(logged, id)
	switch {
	case i < 0:
		return fmt.Errorf("remove replica %s: %w", id, errNotMember)
	case len(logged) == 1:
		return fmt.Errorf("remove replica %s: it is the last one", id)
	case id == s.options.Replica:
		if err := s.Transfer(ctx, ""); err != nil {
			return err
		}
		return s.notLeader()
	}
	return s.group.await(ctx, "remove replica "+id, s.group.log.raft.RemoveServer(raft.ServerID(id), 0, 0))
}

// Transfer hands leadership over to a replica, or with "" to the one that is furthest. Only the leader can: ErrNotLeader.
// It returns when this replica does not lead any more.
func (s *Store) Transfer(ctx context.Context, to string) error {
	if err := s.canChange(); err != nil {
		return err
	}
	if to == s.options.Replica {
		return nil
	}
	for try := 1; ; try++ {
		term := s.log.term()
		f, err := s.transfer(to)
		if err != nil {
			return err
		}
		if err := s.group.await(ctx, "transfer leadership", f); err != nil {
			return err
		}
		again := false
		err = s.group.until(ctx, "wait for the next leader", func() bool {
			again = s.log.leading() && s.batcher.ledTerm.Load() > term
			return again || !s.log.leading() && s.group.log.leader() != "" && s.group.log.leader() != s.options.Replica
		})
		switch {
		case err != nil || !again:
			return err
		case try == transferTries:
			return fmt.Errorf("transfer leadership: the others did not elect the next leader, %s leads again; try again", s.options.Replica)
		}
	}
}

// transferTries is how often leadership is handed over that comes back: the next leader may lose the election that it is
// told to stand for, if an entry came in between.
const transferTries = 5

func (s *Store) transfer(to string) (raft.Future, error) {
	if to == "" {
		return s.group.log.raft.LeadershipTransfer(), nil
	}
	m, ok := s.group.book.find(to)
	if !ok || !m.Voter {
		return nil, fmt.Errorf("transfer leadership to %s: it does not vote", to)
	}
	return s.group.log.raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(m.Address)), nil
}

func (s *Store) canChange() error {
	switch {
	case s.group == nil:
		return ErrAlone
	case !s.leads():
		return s.notLeader()
	}
	return nil
}

// await waits for raft, or for the end of ctx.
func (g *group) await(ctx context.Context, what string, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }() // ends with raft at the latest
	select {
	case err := <-done:
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
			err = errors.Join(g.store.notLeader(), err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		g.nudge()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

// untilEach is how often until looks.
const untilEach = 10 * time.Millisecond

// until waits for a fact about the membership.
func (g *group) until(ctx context.Context, what string, fact func() bool) error {
	ticker := time.NewTicker(untilEach)
	defer ticker.Stop()
	for !fact() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-g.ctx.Done():
			return fmt.Errorf("%s: %w", what, ErrClosed)
		}
	}
	return nil
}
