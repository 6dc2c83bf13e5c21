package fsm

// Figures are numbers of the whole state for those who watch it. Other than a Snapshot they count what belongs to nodes
// that are offline too.
type Figures struct {
	Leases       int
	Fencing      int     // of Leases, those of fenced links
	OverCapacity int     // leases above their provider's capacity, or above its long capacity if those are more; over all providers
	Waiter       Enqueue // the first of all waiters, 0 = nobody waits
	WaiterSince  int64   // wall clock when it came
	Stored       int     // responses
	Background   int     // of Stored, those that have not ended
	Bytes        int64   // that responses count for
	BytesMax     int64   // that they may count for
}

// Figures computes them. It costs time in proportion to providers and lanes, not to waiters or leases.
func (m *Machine) Figures() Figures {
	f := Figures{Leases: len(m.leases), BytesMax: m.responsesMax()}
	for _, l := range m.fences() {
		f.Fencing += l.held
	}
	for _, id := range sortedKeys(m.providers) {
		f.OverCapacity += m.providers[id].over()
	}
	for _, key := range m.laneKeys() {
		if r := m.lanes[key].waiters.first(); r != nil && (f.Waiter == 0 || r.enqueue < f.Waiter) {
			f.Waiter, f.WaiterSince = r.enqueue, r.enqueuedWall
		}
	}
	f.Stored, f.Background, f.Bytes = m.ResponsesCount()
	return f
}

// over is how many leases of a provider there are above what it may have.
func (p *provider) over() int {
	if p.Capacity <= 0 {
		return 0
	}
	n := max(p.inFlight-p.Capacity, 0)
	if p.LongCapacity >= 0 {
		n = max(n, p.longInFlight-p.LongCapacity)
	}
	return n
}
