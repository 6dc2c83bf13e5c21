package fsm

// putBack takes the lease from a request whose grant came to nothing. It waits at its old place, for the edge's session.
// Settling grants it again, unless an earlier one can use the slot that it has just given back.
func (m *Machine) putBack(r *request, s *session) Outcome {
	l := r.link
	m.giveBack(r)
	m.dropSpent(l)
	if r.direct { // its provider is asked once
		m.drop(r)
		return refused(RefusalUnavailable)
	}
	why := RefusalModelNotFound
	var fit []*candidate
	var dropped string
	if mo := m.models[r.model]; mo != nil {
		fit, dropped, why = m.filter(mo, r)
	}
	r.session, r.lastEdge = s, s.edge
	if len(fit) > 0 {
		why = hope(fit, s)
	}
	if why != RefusalNone {
		m.drop(r)
		return refused(why)
	}
	m.wait(r, fit, dropped)
	for _, c := range r.lane.candidates {
		m.stir(c.provider)
	}
	return Outcome{Code: Queued, Enqueue: r.enqueue}
}

// ungranted tells whether a session claims the place of a request that got a lease after the edge's last word of it, in a
// session that has ended.
func (m *Machine) ungranted(r *request, s *session, c *Admit) bool {
	return !r.waits() && r.session == nil && r.enqueue == c.Place && r.link.edge == s.edge && r.response == nil &&
		!clash(r.fingerprint, c.Fingerprint)
}

// vacant tells whether a place was given once and nobody has it. It costs time in proportion to the waiters and leases.
func (m *Machine) vacant(place Enqueue) bool {
	if place >= m.nextEnqueue {
		return false
	}
	for _, key := range m.laneKeys() {
		if m.lanes[key].waiters.find(place) != nil {
			return false
		}
	}
	for _, id := range sortedKeys(m.nodes) {
		for _, l := range m.nodes[id].links {
			for r := l.firstHeld; r != nil; r = r.heldNext {
				if r.enqueue == place {
					return false
				}
			}
		}
	}
	return true
}

// find returns the request with an enqueue number from a line that is ordered by them, nil if it is not there.
func (l *line) find(place Enqueue) *request {
	r := l.head
	for r != nil && r.enqueue < place {
		r = r.hooks[l.which].next
	}
	if r != nil && r.enqueue == place {
		return r
	}
	for _, r := range l.returners {
		if r.enqueue == place {
			return r
		}
	}
	return nil
}

// evict ends a waiter at an operator's wish.
func (m *Machine) evict(c *Evict) Outcome {
	r := m.requests[c.Request]
	switch {
	case r == nil:
		return Outcome{Code: Unknown}
	case !r.waits():
		return Outcome{Code: Holds, Grant: r.grant()}
	}
	m.end(r, RefusalEvicted)
	return Outcome{Code: Removed}
}
