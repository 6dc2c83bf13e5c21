package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Change is a change of the membership that only the leader can make. Exactly one of Remove and Transfer is set.
type Change struct {
	Remove   string // take this replica out
	Transfer bool   // hand leadership over
	To       string // of Transfer: the next leader; "" = the one that is furthest
}

// Change has the leader change the membership, whichever replica that is, and returns when it is done. A leader that is
// to be removed hands leadership over first. ErrNoLeader: there was none until ctx ended, or it could not be reached: one
// that has just died is taken for the leader until there is another. If the way to it breaks, the change may have been
// made: ask for the members.
func (s *Store) Change(ctx context.Context, c Change) error {
	for tried := false; ; tried = true {
		err := s.Changed(ctx, c)
		if errors.Is(err, ErrNotLeader) {
			err = s.group.askChange(ctx, c)
		}
		switch {
		case tried && errors.Is(err, errNotMember):
			return nil // an attempt before did it
		case !passing(err):
			return err
		}
		select {
		case <-time.After(askEach):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
	}
}

// Changed makes a change if this replica leads: ErrNotLeader.
func (s *Store) Changed(ctx context.Context, c Change) error {
	switch {
	case c.Remove != "":
		return s.RemoveMember(ctx, c.Remove)
	case c.Transfer:
		return s.Transfer(ctx, c.To)
	}
	return errors.New("a change of the membership that this version does not know")
}

func (g *group) askChange(ctx context.Context, c Change) error {
	log := g.running.Load()
	if log == nil {
		return ErrNoLeader
	}
	leader := log.leader()
	to, ok := g.book.find(leader)
	if !ok || leader == g.store.options.Replica {
		return ErrNoLeader
	}
	if c.Transfer && c.To == leader {
		return nil
	}
	return g.options.Network.Change(ctx, to, c)
}

// passing tells that a request of the leader may do better in a moment: there is none, or another one soon.
func passing(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, ErrNoLeader) || errors.Is(err, ErrNoAnswer)
}
