package fsm

// Explanation tells of a waiter why it waits.
type Explanation struct {
	RequestView
	Ahead      []AheadView // the first AheadMax waiters before it that could take a slot that it could take
	AheadCount int         // how many there are
	States     []CandidateState
	Whose      PrincipalView
}

// AheadMax is how many of the waiters before another one are told of.
const AheadMax = 20

// AheadView is a waiter before another one.
type AheadView struct {
	Request  RequestID
	Model    ModelID
	Class    Class
	Position int
}

// CandidateState is a candidate of a waiter with what its slots are doing.
type CandidateState struct {
	CandidateView
	Node         NodeID
	Capacity     int // 0 = unlimited
	InFlight     int
	LongCapacity int // LongUncounted = not counted
	LongInFlight int
	Cause        string    // of its health
	Holders      []LeaseID // the first AheadMax leases that hold its slots
}

// Explain tells of a request in being that waits; false if there is none. It costs time in proportion to the queue.
func (m *Machine) Explain(id RequestID) (Explanation, bool) {
	r := m.requests[id]
	if r == nil || !r.waits() {
		return Explanation{}, false
	}
	x := Explanation{RequestView: m.view(r), Whose: r.who.view()}
	for i, other := range m.waiters() {
		if other == r {
			x.Position = i + 1
			break
		}
		if !m.competes(other, r) {
			continue
		}
		if x.AheadCount++; x.AheadCount <= AheadMax {
			x.Ahead = append(x.Ahead, AheadView{Request: other.id, Model: other.model, Class: other.class, Position: i + 1})
		}
	}
	for _, c := range x.Candidates {
		x.States = append(x.States, m.candidateState(c))
	}
	return x, true
}

// competes tells whether two waiters have a candidate in common that fits both.
func (m *Machine) competes(a, b *request) bool {
	mo, mine := m.models[a.model], m.models[b.model]
	if mo == nil || mine == nil || a.state == StateDetached || a.who.full() {
		return false
	}
	for _, c := range mo.candidates {
		for _, d := range mine.candidates {
			if c.provider == d.provider && c.provider.fits(a) == "" && d.provider.fits(b) == "" {
				return true
			}
		}
	}
	return false
}

func (m *Machine) candidateState(c CandidateView) CandidateState {
	s := CandidateState{CandidateView: c}
	p := m.providers[c.Provider]
	if p == nil {
		return s
	}
	s.Node, s.Capacity, s.InFlight, s.LongCapacity, s.LongInFlight = p.node.id, p.Capacity, p.inFlight, p.LongCapacity, p.longInFlight
	s.Cause = p.cause
	for _, id := range sortedKeys(m.leases) {
		if len(s.Holders) < AheadMax && m.leases[id].provider == p {
			s.Holders = append(s.Holders, id)
		}
	}
	return s
}
