package storage

import (
	"time"

	"iop/fsm"
)

// silence is for how long the leader has not heard of a replica.
type silence struct {
	contacts uint64
	lasted   time.Duration
	since    fsm.Time // cluster time before which it was heard of last, or this leader's term had not begun
	ending   bool     // its session is being ended
}

// endLost ends the sessions of replicas that were not heard of for the session TTL, and of edges that are no replicas
// any more. Heartbeats tell, nothing is written for it. A new leader begins to count when its term does.
func (g *group) endLost(members []Member, step time.Duration) {
	type current struct {
		edge fsm.EdgeID
		id   fsm.SessionID
	}
	var open []current
	before := g.looked
	g.store.View(func(m *fsm.Machine) {
		g.looked = m.Now()
		m.EachSession(func(e fsm.EdgeID, id fsm.SessionID) { open = append(open, current{e, id}) })
	})
	seen := make(map[string]bool, len(open))
	for _, c := range open {
		id := string(c.edge)
		if id == g.store.options.Replica {
			continue
		}
		seen[id] = true
		x := g.silences[id]
		if x == nil {
			x = &silence{since: before}
			g.silences[id] = x
		}
		n := uint64(0)
		if find(members, id) >= 0 {
			n = g.peers.contacts(id)
		}
		if n != x.contacts {
			*x = silence{contacts: n, since: before}
			continue
		}
		if x.lasted += step; x.lasted < g.options.SessionTTL || x.ending {
			continue
		}
		x.ending = true
		g.logger.Warn("replica is lost: its session is ended", "replica", id, "session", uint64(c.id), "silent", x.lasted)
		g.store.put(g.store.plain, g.endOf(c.edge, c.id, x.since), nobody{}, true)
	}
	for id := range g.silences {
		if !seen[id] {
			delete(g.silences, id)
		}
	}
}

// nobody receives outcomes that nobody waits for.
type nobody struct{}

// Receive implements Receiver.
func (nobody) Receive(fsm.Outcome, error) {}

// forgive has nobody silent, while somebody else leads, but notes cluster time.
func (g *group) forgive() {
	clear(g.silences)
	g.store.View(func(m *fsm.Machine) { g.looked = m.Now() })
}

// endOf ends the session of an edge that may live: it may only have lost its quorum.
func (g *group) endOf(edge fsm.EdgeID, id fsm.SessionID, since fsm.Time) *fsm.EndSession {
	level := g.store.replica.level.Load()
	end := &fsm.EndSession{Edge: edge, Session: id, Reason: fsm.ReasonSessionEnded, Alive: true, Apart: true, Since: since}
	if fsm.LevelOf(end) > level {
		end.Since = 0
	}
	if fsm.LevelOf(end) > level {
		end.Apart = false
		end.Alive = fsm.LevelOf(end) <= level
	}
	return end
}
