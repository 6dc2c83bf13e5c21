package fsm

import "slices"

// expire ends what is overdue: waiters past their deadline, fenced links without a report, startup graces,
// join tokens.
func (m *Machine) expire(c *Expire) Outcome {
	if c.Term != m.term {
		return Outcome{Code: Stale} // proposed by a leader of before
	}
	ends := 0
	for ends < ExpireMax {
		r := m.deadlines.first()
		if r == nil || Time(r.hooks[hookDeadline].key) > m.now {
			break
		}
		why := RefusalQueueTimeout
		if r.state == StateDetached {
			why = RefusalAbandoned
		}
		m.end(r, why)
		ends++
	}
	for _, l := range m.fences() {
		if l.fenceUntil <= m.now && ends < ExpireMax {
			ends += l.held
			m.reclaimAll(l, ReasonFenceTimeout)
		}
	}
	for _, id := range sortedKeys(m.sessions) {
		if s := m.sessions[id]; s.graceUntil > 0 && s.graceUntil <= m.now {
			s.graceUntil = 0
			m.spansMoved = true
			ends++
			m.doubtSession(s)
		}
	}
	ends += m.forgetJoins(ExpireMax - min(ends, ExpireMax))
	ends += m.expireResponses(ExpireMax - min(ends, ExpireMax))
	return Outcome{Code: Done, Count: ends}
}

// doubtSession has all lanes of a session looked at.
func (m *Machine) doubtSession(s *session) {
	for _, key := range m.laneKeys() {
		if l := m.lanes[key]; l.session == s {
			for _, c := range l.candidates {
				m.doubt(c.provider)
			}
		}
	}
}

// fences returns the fenced links that have leases, by node and generation.
func (m *Machine) fences() []*link {
	var out []*link
	for _, id := range sortedKeys(m.nodes) {
		for _, l := range m.nodes[id].links {
			if l.state == LinkFenced {
				out = append(out, l)
			}
		}
	}
	return slices.Clip(out)
}

// NextDeadline returns the cluster time at which an Expire has something to end, false if there is nothing to expire.
// It costs the same however many waiters there are.
func (m *Machine) NextDeadline() (Time, bool) {
	if m.spansMoved {
		m.spansMoved = false
		m.spanNext = 0
		for _, l := range m.fences() {
			m.spanNext = sooner(m.spanNext, l.fenceUntil)
		}
		for _, id := range sortedKeys(m.sessions) {
			m.spanNext = sooner(m.spanNext, m.sessions[id].graceUntil)
		}
		for i := range m.joins {
			m.spanNext = sooner(m.spanNext, m.joins[i].Forget)
		}
	}
	next := sooner(m.spanNext, m.nextResponse())
	if r := m.deadlines.first(); r != nil {
		next = sooner(next, Time(r.hooks[hookDeadline].key))
	}
	return next, next > 0
}

// sooner returns the earlier of two times, of which 0 is never.
func sooner(a, b Time) Time {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
