package fsm

import "slices"

// Snapshot computes what operators see of this state.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{
		Index: m.index, Term: m.term, Now: m.now, Wall: m.wall, Revision: m.revision,
		Queue:     QueueView{Pending: m.pending, Max: m.pool().MaxQueue, LongPending: m.longPending, Detached: m.detached},
		Providers: make([]ProviderView, 0, len(m.providers)),
		Nodes:     make([]NodeView, 0, len(m.nodes)),
		Sessions:  make([]SessionView, 0, len(m.sessions)),
		Models:    make([]ModelView, 0, len(m.models)),
		Granted:   m.granted, Returned: m.returned,
	}
	fencing := m.fencing()
	for _, id := range sortedKeys(m.providers) {
		s.Providers = append(s.Providers, m.providers[id].view(fencing[id]))
	}
	for _, id := range sortedKeys(m.nodes) {
		if n := m.nodes[id]; !n.removed || len(n.links) > 0 || len(n.providers) > 0 {
			s.Nodes = append(s.Nodes, n.view())
		}
	}
	for _, id := range sortedKeys(m.sessions) {
		e := m.sessions[id]
		s.Sessions = append(s.Sessions, SessionView{ID: id, Edge: e.edge, InGrace: e.graceUntil > 0, OpenedWall: e.openedWall})
	}
	queued := map[ModelID]int{}
	for _, key := range m.laneKeys() {
		queued[key.model] += m.lanes[key].waiters.len()
	}
	for _, id := range sortedKeys(m.models) {
		s.Models = append(s.Models, m.models[id].view(queued[id]))
	}
	return s
}

// fencing counts the leases of fenced links per provider. A provider's may belong to a link of another node than its
// own: the configuration can move it while they run.
func (m *Machine) fencing() map[ProviderID]int {
	count := map[ProviderID]int{}
	for _, l := range m.fences() {
		for r := l.firstHeld; r != nil; r = r.heldNext {
			count[r.provider.ID]++
		}
	}
	return count
}

func (p *provider) view(fencing int) ProviderView {
	v := ProviderView{
		ID: p.ID, Node: p.node.id, Connected: p.node.connected(), Status: p.status(), Health: p.health.String(),
		Cause: p.cause, Enabled: p.Enabled, Draining: p.drained(), Unlimited: p.Capacity == 0,
		Generation: p.node.generation, Priority: p.Priority, Granted: p.granted, Returned: p.returned,
	}
	for _, at := range p.lanes {
		n := at.lane.waiters.len()
		v.Queued += n
		if at.lane.class == ClassLong {
			v.LongQueued += n
		}
	}
	if !v.Connected {
		v.Health = "offline"
		return v
	}
	v.Capacity, v.InFlight, v.LongCapacity, v.LongInFlight = p.Capacity, p.inFlight, p.LongCapacity, p.longInFlight
	v.Fencing = fencing
	return v
}

// status puts the strongest reason first.
func (p *provider) status() string {
	switch {
	case p.removed:
		return "removed"
	case !p.node.connected():
		return "unavailable"
	case !p.Enabled:
		return "disabled"
	case p.health != Healthy:
		return "degraded"
	case p.drained():
		return "draining"
	case !p.free(ClassNormal):
		return "full"
	}
	return "available"
}

func (n *node) view() NodeView {
	v := NodeView{ID: n.id, Connected: n.connected(), Generation: n.generation, Draining: n.draining, Links: []LinkView{}}
	for _, l := range n.links {
		v.Links = append(v.Links, LinkView{Node: n.id, Edge: l.edge, Generation: l.generation, State: l.state, Leases: l.held})
	}
	return v
}

func (mo *model) view(queued int) ModelView {
	v := ModelView{ID: mo.id, Candidates: []Candidate{}, Queued: queued}
	for _, c := range mo.candidates {
		v.Candidates = append(v.Candidates, Candidate{Provider: c.provider.ID, Served: c.served})
		v.Available = v.Available || c.provider.open() && c.provider.node.connected()
	}
	return v
}

// Leases returns the requests that hold a lease, by lease id.
func (m *Machine) Leases() []RequestView {
	out := make([]RequestView, 0, len(m.leases))
	for _, id := range sortedKeys(m.leases) {
		out = append(out, m.view(m.leases[id]))
	}
	return out
}

// Waiters returns the queue in order.
func (m *Machine) Waiters() []RequestView {
	out := make([]RequestView, 0, m.pending)
	for i, r := range m.waiters() {
		v := m.view(r)
		v.Position = i + 1
		out = append(out, v)
	}
	return out
}

// Request returns a request in being. The position of a waiter costs time in proportion to the queue.
func (m *Machine) Request(id RequestID) (RequestView, bool) {
	r := m.requests[id]
	if r == nil {
		return RequestView{}, false
	}
	v := m.view(r)
	if r.waits() {
		v.Position = slices.Index(m.waiters(), r) + 1
	}
	return v, true
}

// Lease returns the request that holds a lease.
func (m *Machine) Lease(id LeaseID) (RequestView, bool) {
	r := m.leases[id]
	if r == nil {
		return RequestView{}, false
	}
	return m.view(r), true
}

func (m *Machine) view(r *request) RequestView {
	v := RequestView{RequestRow: r.row(), Candidates: []CandidateView{}}
	if !r.waits() {
		v.Age = m.now - r.grantedAt
		return v
	}
	v.Age = m.now - r.enqueuedAt
	v.Deadline = m.deadline(r)
	if mo := m.models[r.model]; mo != nil {
		for _, c := range mo.candidates {
			why := c.provider.whyNot(r)
			v.Candidates = append(v.Candidates, CandidateView{Provider: c.provider.ID, Dispatchable: why == "", Reason: why})
		}
	}
	return v
}

// whyNot tells why the waiter can't have the provider now, "" if it could.
func (p *provider) whyNot(r *request) string {
	if why := p.fits(r); why != "" {
		return why
	}
	switch {
	case p.removed:
		return WhyRemoved
	case !p.Enabled:
		return WhyDisabled
	case p.drained():
		return WhyDraining
	case p.health != Healthy:
		return WhyDegraded
	case r.session == nil:
		return WhyDetached
	case r.who.full():
		return WhyPrincipal
	case p.node.ready(r.session) == nil:
		return p.whyNotLinked(r.session)
	case !p.free(ClassNormal):
		return WhyFull
	case !p.free(r.class):
		return WhyLongFull
	}
	return ""
}

func (p *provider) whyNotLinked(s *session) string {
	switch {
	case p.node.pending(s) != nil:
		return WhyPending
	case s.graceUntil > 0:
		return WhyRecovering
	}
	return WhyOffline
}
