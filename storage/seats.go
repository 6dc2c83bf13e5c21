package storage

import (
	"context"
	"sync"
	"time"

	"iop/fsm"
)

// Seat is one member of the cluster, as a replica that asked all of them sees it.
type Seat struct {
	Member
	Standing *Standing     // by its own word; nil = it did not answer
	Err      error         // why it did not
	Silent   time.Duration // since it was last heard of; negative = never by this process
	Session  fsm.SessionID // of its edge, as this replica's state has it; 0 = none
}

// Seats asks all members how they stand, each at most until ctx ends.
func (s *Store) Seats(ctx context.Context) []Seat {
	members := s.Members()
	out := make([]Seat, len(members))
	var wait sync.WaitGroup
	for i, m := range members {
		x := &out[i]
		x.Member = m
		if m.ID == s.options.Replica {
			st := s.Standing()
			x.Standing = &st
			continue
		}
		wait.Go(func() {
			st, err := s.group.options.Network.Standing(ctx, m)
			if err != nil {
				x.Err, x.Silent = err, s.group.contacts.since(m.ID)
				return
			}
			s.group.contacts.note(m.ID, time.Now())
			x.Standing = &st
		})
	}
	wait.Wait()
	s.View(func(m *fsm.Machine) {
		for i := range out {
			out[i].Session, _ = m.CurrentSession(fsm.EdgeID(out[i].ID))
		}
	})
	return out
}

// contacts are when replicas were heard of last. The zero value is ready.
type contacts struct {
	mu    sync.Mutex
	at    map[string]time.Time
	count map[string]uint64
}

func (c *contacts) note(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at, c.count = map[string]time.Time{}, map[string]uint64{}
	}
	if at.After(c.at[id]) {
		c.at[id] = at
	}
}

// counted notes a contact if there were more than before.
func (c *contacts) counted(id string, n uint64, now time.Time) {
	c.mu.Lock()
	before := c.count[id]
	c.mu.Unlock()
	if n == before {
		return
	}
	c.note(id, now)
	c.mu.Lock()
	c.count[id] = n
	c.mu.Unlock()
}

func (c *contacts) since(id string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[id]
	if !ok {
		return -1
	}
	return time.Since(at)
}

// keep forgets replicas that are no members.
func (c *contacts) keep(members []Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.at {
		if find(members, id) < 0 {
			delete(c.at, id)
			delete(c.count, id)
		}
	}
}

// hear notes whom raft has heard of: a leader all, a follower its leader.
func (g *group) hear(now time.Time) {
	members := g.book.all()
	g.contacts.keep(members)
	for _, m := range members {
		g.contacts.counted(m.ID, g.peers.contacts(m.ID), now)
	}
	if leader := g.log.leader(); leader != "" && leader != g.store.options.Replica {
		if at := g.log.raft.LastContact(); !at.IsZero() {
			g.contacts.note(leader, at)
		}
	}
}
