package fsm

import "slices"

// node is the owner of providers. Its record outlives its removal from the configuration, so that no generation is
// ever given twice.
type node struct {
	id         NodeID
	generation Generation // the last one given
	instance   uint64     // of the process that registered last
	draining   bool
	removed    bool
	token      TokenHash // got by joining; zero = what the configuration says
	links      []*link   // by generation: pending, ready, and fenced ones with leases
	providers  []*provider
}

// ready returns the node's ready link to the session's edge, nil if there is none.
func (n *node) ready(s *session) *link {
	if s != nil && s.id == anySession {
		return n.idlest()
	}
	for _, l := range n.links {
		if l.session == s && l.state == LinkReady {
			return l
		}
	}
	return nil
}

// idlest returns the node's ready link with the fewest leases, to whichever edge; nil if there is none.
func (n *node) idlest() *link {
	var best *link
	for _, l := range n.links {
		if l.state == LinkReady && (best == nil || l.held < best.held) {
			best = l
		}
	}
	return best
}

// pending returns the node's pending link to the session's edge, nil if there is none.
func (n *node) pending(s *session) *link {
	for _, l := range n.links {
		if l.state == LinkPending && (l.session == s || s != nil && s.id == anySession) {
			return l
		}
	}
	return nil
}

// link returns the node's link of a generation, nil if it is gone.
func (n *node) link(g Generation) *link {
	for _, l := range n.links {
		if l.generation == g {
			return l
		}
	}
	return nil
}

// connected tells whether the node has a ready link to any edge.
func (n *node) connected() bool { return n.has(LinkReady) }

// linked tells whether the node has a link, pending or ready, to any edge.
func (n *node) linked() bool { return n.has(LinkReady) || n.has(LinkPending) }

func (n *node) has(state LinkState) bool {
	for _, l := range n.links {
		if l.state == state {
			return true
		}
	}
	return false
}

// register begins a link.
func (m *Machine) register(s *session, c *RegisterNode) Outcome {
	n := m.nodes[c.Node]
	if n == nil || n.removed {
		return refused(RefusalUnknownNode)
	}
	var old *link
	for _, l := range n.links {
		switch {
		case l.state == LinkFenced:
		case l.session == s:
			old = l
		case n.instance != c.Instance:
			return refused(RefusalDuplicate) // another process uses the name, on another edge
		}
	}
	if old != nil {
		if old.generation != c.Supersede {
			return refused(RefusalDuplicate)
		}
		m.fence(old, ReasonSuperseded, false)
	}
	counted := m.settleAccount(n, s.edge, c.Running)
	n.generation++
	n.instance = c.Instance
	n.links = append(n.links, &link{
		node: n, generation: n.generation, edge: s.edge, session: s, state: LinkPending,
	})
	return Outcome{Code: Registered, Generation: n.generation, Revision: m.revision, Counted: counted}
}

// settleAccount takes a registering node's word on its fenced generations of that edge, and tells which of the leases
// that it still runs, over whichever link, are counted: the others it has to end before it is ready. Of a link to another
// edge it may not know yet that it was fenced, and be given more over it; its reports will speak of that one.
func (m *Machine) settleAccount(n *node, edge EdgeID, running []LeaseID) []LeaseID {
	var counted []LeaseID
	for _, l := range slices.Clone(n.links) {
		if l.state == LinkFenced && l.edge == edge {
			m.report(l, running)
		}
	}
	for _, id := range running {
		if r := m.leases[id]; r != nil && r.link.node == n && !slices.Contains(counted, id) {
			counted = append(counted, id)
		}
	}
	return counted
}

// nodeReady makes a pending link ready.
func (m *Machine) nodeReady(s *session, c *NodeReady) Outcome {
	n := m.nodes[c.Node]
	if n == nil {
		return Outcome{Code: Stale}
	}
	l := n.link(c.Generation)
	if l == nil || l.session != s || l.state == LinkFenced {
		return Outcome{Code: Stale}
	}
	l.state = LinkReady
	for _, p := range n.providers {
		m.stir(p)
	}
	return Outcome{Code: Done}
}

// setHealth notes a provider's health.
func (m *Machine) setHealth(c *SetHealth) Outcome {
	n, p := m.nodes[c.Node], m.providers[c.Provider]
	if n == nil || p == nil || p.node != n {
		return Outcome{Code: Stale}
	}
	if l := n.link(c.Generation); l == nil || l.state == LinkFenced {
		return Outcome{Code: Stale}
	}
	p.health, p.cause = c.Health, c.Cause
	if len(p.cause) > CauseMax {
		p.cause = p.cause[:CauseMax]
	}
	m.stir(p)
	m.doubt(p)
	return Outcome{Code: Done}
}

// drain stops or allows new leases.
func (m *Machine) drain(c *Drain) Outcome {
	if c.Provider != "" {
		p := m.providers[c.Provider]
		if p == nil || c.Node != "" && p.node.id != c.Node {
			return Outcome{Code: Unknown}
		}
		p.draining = c.On
		m.tellDrained(p.node, p.ID, c.On)
		m.stir(p)
		m.doubt(p)
		return Outcome{Code: Done}
	}
	n := m.nodes[c.Node]
	if n == nil || n.removed {
		return Outcome{Code: Unknown}
	}
	n.draining = c.On
	m.tellDrained(n, "", c.On)
	for _, p := range n.providers {
		m.stir(p)
		m.doubt(p)
	}
	return Outcome{Code: Done}
}

// tellDrained tells the sessions that can tell the node.
func (m *Machine) tellDrained(n *node, p ProviderID, on bool) {
	for _, l := range n.links {
		if l.session != nil {
			m.emit(Effect{Kind: EffectDrained, Session: l.session.id, Edge: l.edge, Node: n.id, Generation: l.generation, Provider: p, On: on})
		}
	}
}

// Fenced returns the generations of a node that are fenced and hold leases, at any edge: what it has to report.
func (m *Machine) Fenced(id NodeID) []Generation {
	n := m.nodes[id]
	if n == nil {
		return nil
	}
	var list []Generation
	for _, l := range n.links {
		if l.state == LinkFenced {
			list = append(list, l.generation)
		}
	}
	return list
}
