package fsm

import (
	"errors"
	"fmt"
)

// Check states the invariants of the machine (docs/SEMANTICS.md 1.10) that one state can show, and that all indexes agree
// with the rows they index. It returns every violation, nil if there is none. It costs time in proportion to the state.
func (m *Machine) Check() error {
	var c checker
	m.checkCounts(&c)
	m.checkRequests(&c)
	m.checkLeases(&c)
	m.checkQueue(&c)
	m.checkSettled(&c)
	m.checkLinks(&c)
	m.checkJoins(&c)
	m.checkPrincipals(&c)
	m.checkLedger(&c)
	m.checkResponses(&c)
	return errors.Join(c.found...)
}

type checker struct{ found []error }

func (c *checker) that(ok bool, format string, args ...any) {
	if !ok {
		c.found = append(c.found, fmt.Errorf(format, args...))
	}
}

// checkCounts: I1 and I6.
func (m *Machine) checkCounts(c *checker) {
	held, long := map[ProviderID]int{}, map[ProviderID]int{}
	for _, id := range sortedKeys(m.leases) {
		r := m.leases[id]
		held[r.provider.ID]++
		if r.class == ClassLong {
			long[r.provider.ID]++
		}
		c.that(m.providers[r.provider.ID] == r.provider, "I1: lease %d names a forgotten provider %s", id, r.provider.ID)
	}
	for _, id := range sortedKeys(m.providers) {
		p := m.providers[id]
		c.that(p.inFlight == held[id], "I1: provider %s counts %d in flight, %d leases name it", id, p.inFlight, held[id])
		c.that(p.longInFlight == long[id], "I1: provider %s counts %d long in flight, %d leases name it", id, p.longInFlight, long[id])
		c.that(p.granted == p.returned+uint64(p.inFlight), "I6: provider %s granted %d, returned %d, holds %d", id, p.granted, p.returned, p.inFlight)
		c.that(!p.dirty && !p.dim, "provider %s was left unsettled", id)
		c.that(!p.removed || p.inFlight > 0, "provider %s is removed and idle, but kept", id)
	}
	c.that(m.granted == m.returned+uint64(len(m.leases)), "I6: granted %d, returned %d, held %d", m.granted, m.returned, len(m.leases))
}

// checkRequests: I3.
func (m *Machine) checkRequests(c *checker) {
	waiters, leases := 0, 0
	for _, id := range sortedKeys(m.requests) {
		r := m.requests[id]
		c.that(r.id == id, "I3: request %s is filed as %s", r.id, id)
		c.that(r.waits() == (r.lane != nil), "I3: request %s is %s and its lane says otherwise", id, r.state)
		c.that(r.waits() == (r.lease == 0), "I3: request %s is %s and has lease %d", id, r.state, r.lease)
		c.that(!r.direct || !r.waits(), "request %s is addressed to one provider, but waits", id)
		if r.waits() {
			waiters++
		} else {
			leases++
			c.that(m.leases[r.lease] == r, "I3: lease %d of request %s is not filed", r.lease, id)
		}
		if r.session != nil && r.session != m.cluster {
			c.that(m.sessions[r.session.id] == r.session, "request %s belongs to session %d, which ended", id, r.session.id)
			c.that(r.lastEdge == r.session.edge, "request %s belongs to edge %s and to a session of %s", id, r.lastEdge, r.session.edge)
		}
	}
	c.that(waiters == m.pending, "I3: %d waiters, %d pending", waiters, m.pending)
	c.that(leases == len(m.leases), "I3: %d requests hold a lease, %d leases are filed", leases, len(m.leases))
}

// checkLeases: I7.
func (m *Machine) checkLeases(c *checker) {
	for _, id := range sortedKeys(m.leases) {
		r := m.leases[id]
		l := r.link
		c.that(l.node.link(l.generation) == l, "I7: lease %d names generation %d of %s, which is gone", id, l.generation, l.node.id)
		want := StateHeld
		if l.state == LinkFenced {
			want = StateFencing
		}
		c.that(r.state == want, "I7: lease %d is %s, its link %s", id, r.state, l.state)
		c.that(l.state != LinkPending, "I7: lease %d came over a link that was never ready", id)
		c.that(r.state == StateFencing || r.session == l.session, "I7: lease %d belongs to another session than its link", id)
		c.that(id < m.nextLease, "lease %d was never given", id)
	}
}

// checkQueue: the lines of the queue hold just the waiters, in order.
func (m *Machine) checkQueue(c *checker) {
	seen, long, detached, timed, background := 0, 0, 0, 0, 0
	for _, key := range m.laneKeys() {
		l := m.lanes[key]
		for _, r := range l.waiters.all() {
			seen++
			c.that(m.requests[r.id] == r && r.lane == l, "waiter %s stands in a lane that is not its own", r.id)
			c.that(r.session == l.session && r.model == key.model && r.class == key.class && m.standsApart(r, l), "waiter %s stands in the wrong lane", r.id)
			c.that(r.enqueue < m.nextEnqueue, "waiter %s has a place %d that was never given", r.id, r.enqueue)
			c.that((r.state == StateDetached) == (r.session == nil), "waiter %s is %s with session %d", r.id, r.state, r.addressee())
			if r.class == ClassLong {
				long++
			}
			if r.state == StateDetached {
				detached++
			}
			if r.response != nil {
				background++
			}
			if at := m.deadline(r); at > 0 {
				timed++
				c.that(r.hooks[hookDeadline].key == uint64(at), "waiter %s has deadline %d, filed as %d", r.id, at, r.hooks[hookDeadline].key)
			}
		}
		m.checkLane(c, l)
	}
	c.that(seen == m.pending, "%d waiters stand in lanes, %d pending", seen, m.pending)
	c.that(long == m.longPending, "%d long waiters, %d counted", long, m.longPending)
	c.that(detached == m.detached, "%d detached waiters, %d counted", detached, m.detached)
	c.that(background == m.background, "%d waiters of background responses, %d counted", background, m.background)
	c.that(timed == m.deadlines.len(), "%d waiters have a deadline, %d are filed", timed, m.deadlines.len())
}

func (m *Machine) checkLane(c *checker, l *lane) {
	c.that(l.waiters.len() == len(l.waiters.all()), "lane %v counts %d waiters, has %d", l.key, l.waiters.len(), len(l.waiters.all()))
	first := l.waiters.first()
	for _, r := range l.waiters.all() {
		c.that(first.enqueue <= r.enqueue, "lane %v: %s stands before %s", l.key, first.id, r.id)
	}
	if l.waiters.len() == 0 {
		return
	}
	for i, can := range l.candidates {
		p := can.provider
		c.that(m.providers[p.ID] == p, "lane %v has a forgotten candidate %s", l.key, p.ID)
		at := l.places[i]
		c.that(at < len(p.lanes) && p.lanes[at].lane == l && p.lanes[at].i == i, "provider %s does not know lane %v", p.ID, l.key)
	}
}

// checkSettled: I4.
func (m *Machine) checkSettled(c *checker) {
	for _, key := range m.laneKeys() {
		l := m.lanes[key]
		if l.session == nil || l.waiters.len() == 0 {
			continue
		}
		first := l.waiters.first()
		for _, can := range l.candidates {
			p := can.provider
			c.that(!p.open() || !p.free(l.class) || l.who.full() || p.node.ready(l.session) == nil, "I4: %s waits, and %s could take it", first.id, p.ID)
		}
		c.that(l.session == m.cluster || hope(l.candidates, l.session) == RefusalNone, "I4: %s waits for nothing", first.id)
	}
}

// checkLinks: nodes, links and sessions agree.
func (m *Machine) checkLinks(c *checker) {
	for _, id := range sortedKeys(m.nodes) {
		n := m.nodes[id]
		perEdge := map[EdgeID]int{}
		for i, l := range n.links {
			c.that(l.generation <= n.generation, "node %s has generation %d, a link %d", id, n.generation, l.generation)
			c.that(i == 0 || n.links[i-1].generation < l.generation, "node %s: links out of order", id)
			held := 0
			for r := l.firstHeld; r != nil; r = r.heldNext {
				held++
				c.that(r.link == l && (r.heldNext == nil || r.lease < r.heldNext.lease), "link %s/%d: leases out of order", id, l.generation)
			}
			c.that(held == l.held, "link %s/%d counts %d leases, has %d", id, l.generation, l.held, held)
			if l.state == LinkFenced {
				c.that(l.held > 0, "link %s/%d is fenced and empty, but kept", id, l.generation)
				c.that(n.linked() || l.fenceUntil > 0, "link %s/%d is fenced and holds leases, but the node has no other link, and no time is set", id, l.generation)
				continue
			}
			perEdge[l.edge]++
			c.that(perEdge[l.edge] == 1, "node %s has two links to edge %s", id, l.edge)
			c.that(l.session != nil && m.sessions[l.session.id] == l.session && l.session.edge == l.edge, "link %s/%d has no session", id, l.generation)
			c.that(!n.removed, "node %s is removed, but linked", id)
		}
	}
	for _, id := range sortedKeys(m.sessions) {
		s := m.sessions[id]
		c.that(m.edges[s.edge] == s, "session %d of edge %s is not its current one", id, s.edge)
		for i, b := range s.batches {
			c.that(b.Seq < s.nextSeq && b.Seq >= s.ackBelow && (i == 0 || s.batches[i-1].Seq < b.Seq), "session %d keeps batch %d out of order", id, b.Seq)
		}
	}
}
