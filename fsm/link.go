package fsm

import "slices"

// link is one connection between a node and an edge, named for ever by the node and its generation.
type link struct {
	node       *node
	generation Generation
	edge       EdgeID
	session    *session // nil once fenced
	state      LinkState
	fenceUntil Time
	apart      bool     // fenced, and its edge may carry on what runs even if the node has no other link
	firstHeld  *request // its leases, by lease id
	lastHeld   *request
	held       int
}

func (l *link) hold(r *request) {
	r.link = l
	r.heldPrev, r.heldNext = l.lastHeld, nil
	if l.lastHeld != nil {
		l.lastHeld.heldNext = r
	} else {
		l.firstHeld = r
	}
	l.lastHeld = r
	l.held++
}

func (l *link) unhold(r *request) {
	if r.heldPrev != nil {
		r.heldPrev.heldNext = r.heldNext
	} else {
		l.firstHeld = r.heldNext
	}
	if r.heldNext != nil {
		r.heldNext.heldPrev = r.heldPrev
	} else {
		l.lastHeld = r.heldPrev
	}
	r.heldPrev, r.heldNext = nil, nil
	l.held--
}

// linkLost fences a link of the session's edge.
func (m *Machine) linkLost(s *session, c *LinkLost) Outcome {
	n := m.nodes[c.Node]
	if n == nil {
		return Outcome{Code: Stale}
	}
	l := n.link(c.Generation)
	if l == nil || l.session != s {
		return Outcome{Code: Stale}
	}
	m.fence(l, c.Reason, false)
	return Outcome{Code: Done}
}

// fence ends a link. Its leases are returned if the node has no other link; else the backend may still be busy while
// the node can be given work over the other one, so they stay counted. A pending link counts as another one: it could
// become ready on the node's word of before this fence. With alive they stay counted in any case: the edge may only have
// lost its session, and its transport carries on what runs. So do those of links that are apart.
func (m *Machine) fence(l *link, why Reason, alive bool) {
	n := l.node
	m.emit(Effect{
		Kind: EffectLinkFenced, Session: l.session.id, Edge: l.edge, Node: n.id, Generation: l.generation, Reason: why,
	})
	wasReady := l.state == LinkReady
	l.state, l.session = LinkFenced, nil
	for r := l.firstHeld; r != nil; r = r.heldNext {
		r.state = StateFencing
	}
	if n.linked() || alive {
		m.setFence(l)
	} else {
		for _, fenced := range slices.Clone(n.links) {
			if !fenced.apart {
				m.reclaimAll(fenced, why)
			}
		}
	}
	m.dropSpent(l)
	if wasReady && !n.connected() || !n.linked() {
		for _, p := range n.providers {
			p.health, p.cause = Healthy, ""
		}
	}
	for _, p := range n.providers {
		m.doubt(p)
	}
}

func (m *Machine) setFence(l *link) {
	l.fenceUntil = m.now + m.pool().FenceTimeout
	m.spansMoved = true
}

// reclaimAll returns all leases of a fenced link.
func (m *Machine) reclaimAll(l *link, why Reason) {
	for l.firstHeld != nil {
		m.reclaim(l.firstHeld, why)
	}
	m.dropSpent(l)
}

// dropSpent forgets a fenced link without leases.
func (m *Machine) dropSpent(l *link) {
	if l.state != LinkFenced || l.held > 0 {
		return
	}
	n := l.node
	if i := slices.Index(n.links, l); i >= 0 {
		n.links = slices.Delete(n.links, i, i+1)
		m.spansMoved = true
	}
}

// linkReport takes a node's word on a fenced generation.
func (m *Machine) linkReport(c *LinkReport) Outcome {
	n := m.nodes[c.Node]
	if n == nil {
		return Outcome{Code: Stale}
	}
	l := n.link(c.Generation)
	if l == nil || l.state != LinkFenced {
		return Outcome{Code: Stale}
	}
	m.report(l, c.Running)
	return Outcome{Code: Done}
}

// report returns the leases of a fenced link that are not named; the others have a new fence timeout.
func (m *Machine) report(l *link, running []LeaseID) {
	for r := l.firstHeld; r != nil; {
		next := r.heldNext
		if !slices.Contains(running, r.lease) {
			m.reclaim(r, ReasonReported)
		}
		r = next
	}
	if l.held > 0 {
		m.setFence(l)
	}
	m.dropSpent(l)
}
