package fsm

// Glance is the requests in being in short, for those who look often: it costs time in proportion to the requests, and to
// the candidates of each kind of waiter, not of each waiter.
type Glance struct {
	Leases  []LeaseGlance  // by lease id
	Waiters []WaiterGlance // in no particular order
	Holds   []Hold         // what holds waiters back; WaiterGlance.Hold is an index of it
}

// LeaseGlance is a request that holds a lease.
type LeaseGlance struct {
	Lease       LeaseID
	Request     RequestID
	Model       ModelID
	Provider    ProviderID
	Node        NodeID
	Class       Class
	State       RequestState
	Edge        EdgeID
	Generation  Generation
	GrantedWall int64
}

// WaiterGlance is a waiter.
type WaiterGlance struct {
	Request      RequestID
	Model        ModelID
	Class        Class
	State        RequestState
	Edge         EdgeID
	Principal    PrincipalID
	Enqueue      Enqueue
	EnqueuedAt   Time
	EnqueuedWall int64
	Deadline     Time // 0 = none
	Hold         int
}

// Hold is what keeps the waiters of one kind waiting: why their candidates can't be had, and how many can't for the same
// reason. Those that can be had have "".
type Hold struct {
	Candidates int
	Reasons    []HoldReason // in order of their first candidates
}

// HoldReason is one reason, as CandidateView has it.
type HoldReason struct {
	Why      string
	Count    int
	Provider ProviderID // the first of them
	Node     NodeID     // of that provider
}

// Glance looks at the requests in being.
func (m *Machine) Glance() Glance {
	g := Glance{Leases: make([]LeaseGlance, 0, len(m.leases)), Waiters: make([]WaiterGlance, 0, m.pending), Holds: []Hold{}}
	for _, id := range sortedKeys(m.leases) {
		r := m.leases[id]
		g.Leases = append(g.Leases, LeaseGlance{
			Lease: r.lease, Request: r.id, Model: r.model, Provider: r.provider.ID, Node: r.link.node.id, Class: r.class,
			State: r.state, Edge: r.lastEdge, Generation: r.link.generation, GrantedWall: r.grantedWall,
		})
	}
	kinds := map[laneKey]int{}
	for _, key := range m.laneKeys() {
		l := m.lanes[key]
		if l.waiters.len() == 0 {
			continue
		}
		kind := key
		kind.own, kind.who = l.who.full(), "" // principals differ only in whether they hold all that they may
		at, known := kinds[kind]
		if !known {
			at = len(g.Holds)
			kinds[kind] = at
			g.Holds = append(g.Holds, l.hold())
		}
		for _, r := range l.waiters.all() {
			g.Waiters = append(g.Waiters, WaiterGlance{
				Request: r.id, Model: r.model, Class: r.class, State: r.state, Edge: r.lastEdge, Principal: r.who.id,
				Enqueue: r.enqueue, EnqueuedAt: r.enqueuedAt, EnqueuedWall: r.enqueuedWall, Deadline: m.deadline(r), Hold: at,
			})
		}
	}
	return g
}

// hold asks for the lane's first: in what matters here the others are like it.
func (l *lane) hold() Hold {
	h, r := Hold{Candidates: len(l.candidates)}, l.waiters.first()
next:
	for _, c := range l.candidates {
		why := c.provider.whyNot(r)
		for i := range h.Reasons {
			if h.Reasons[i].Why == why {
				h.Reasons[i].Count++
				continue next
			}
		}
		h.Reasons = append(h.Reasons, HoldReason{Why: why, Count: 1, Provider: c.provider.ID, Node: c.provider.node.id})
	}
	return h
}

// Load is how much of what there is is in use.
type Load struct {
	Pending   int
	InFlight  int // of providers whose node is connected
	Capacity  int // of these
	Unlimited bool
}

// Load adds up the providers.
func (m *Machine) Load() Load {
	out := Load{Pending: m.pending}
	for _, id := range sortedKeys(m.providers) {
		p := m.providers[id]
		if p.removed || !p.node.connected() {
			continue
		}
		out.InFlight += p.inFlight
		out.Capacity += p.Capacity
		out.Unlimited = out.Unlimited || p.Capacity == 0
	}
	return out
}
