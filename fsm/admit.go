package fsm

// admit decides about a new request, or hands a detached waiter to the client that came back for it.
func (m *Machine) admit(s *session, c *Admit) Outcome {
	if c.Request == "" || len(c.Request) > RequestIDMax || len(c.Principal) > NameMax || len(c.Token) > NameMax {
		return refused(RefusalMalformed)
	}
	if c.Provider != "" {
		return m.admitDirect(s, c)
	}
	if r := m.requests[c.Request]; r != nil {
		if m.ungranted(r, s, c) {
			m.tellReturned(r, ReasonNeverSent)
			return m.putBack(r, s)
		}
		if r.state != StateDetached || clash(r.fingerprint, c.Fingerprint) {
			return refused(RefusalInProgressElsewhere)
		}
		m.restitute(r, c.Place)
		return m.reattach(r, s)
	}
	if c.Place > 0 && m.vacant(c.Place) {
		return m.admitNew(s, c, c.Place)
	}
	if line := m.orphans[c.Fingerprint]; line != nil {
		r := line.first()
		delete(m.requests, r.id)
		r.id = c.Request
		m.requests[r.id] = r
		return m.reattach(r, s)
	}
	return m.admitNew(s, c, 0)
}

func clash(a, b Fingerprint) bool {
	return a != b && a != Fingerprint{} && b != Fingerprint{}
}

// admitNew decides about a request that nobody knows: at the end of the queue, or at its old place if that is not 0.
func (m *Machine) admitNew(s *session, c *Admit, place Enqueue) Outcome {
	mo := m.models[c.Model]
	if mo == nil {
		return refused(RefusalModelNotFound)
	}
	r := m.fresh(s, c)
	fit, dropped, why := m.filter(mo, r)
	var chosen *candidate
	if len(fit) > 0 {
		if !r.who.full() {
			chosen = mo.choose(fit, s, r.class)
		}
		why = hopeUnless(chosen, fit, s)
	}
	switch {
	case !r.who.may(c.Model):
		why = RefusalModelNotFound
	case why != RefusalNone || chosen != nil || place > 0:
	case r.who.crowded():
		why = RefusalPrincipalLimit
	case m.pending-m.background >= m.pool().MaxQueue:
		why = RefusalQueueFull
	}
	if why != RefusalNone {
		m.recycle(r)
		return refused(why)
	}
	if r.enqueue = place; place == 0 {
		r.enqueue = m.nextEnqueue
		m.nextEnqueue++
	}
	r.enqueuedAt, r.enqueuedWall, r.enqueuedIndex = m.now, m.wall, m.index
	m.requests[r.id] = r
	if chosen != nil {
		m.give(r, mo, chosen)
		return Outcome{Code: Granted, Grant: r.grant()}
	}
	m.wait(r, fit, dropped)
	if place > 0 {
		return Outcome{Code: Queued, Enqueue: r.enqueue}
	}
	return Outcome{Code: Queued, Position: m.pending, Enqueue: r.enqueue}
}

// fresh is a request as it is asked for. It stands nowhere yet.
func (m *Machine) fresh(s *session, c *Admit) *request {
	r := m.newRequest()
	r.id, r.fingerprint, r.model, r.class, r.inputTokens = c.Request, c.Fingerprint, c.Model, c.Class, c.InputTokens
	r.needs, r.maxWait, r.session, r.lastEdge = c.Needs, c.MaxWait, s, s.edge
	r.token, r.metered = c.Token, c.Metered
	m.enter(r, c.Principal)
	return r
}

// hopeUnless is hope, asked only if there is no choice.
func hopeUnless(chosen *candidate, fit []*candidate, s *session) Refusal {
	if chosen != nil {
		return RefusalNone
	}
	return hope(fit, s)
}

// resume decides about a request that comes back to its old place: after a refusal of its provider, or with a new
// session. It holds nothing and is in no line.
func (m *Machine) resume(r *request) Outcome {
	if r.direct { // the one provider that it asked for did not take it
		m.drop(r)
		return refused(RefusalUnavailable)
	}
	mo := m.models[r.model]
	if mo == nil {
		m.drop(r)
		return refused(RefusalModelNotFound)
	}
	fit, dropped, why := m.filter(mo, r)
	defers := r.who.defers()
	if len(fit) > 0 {
		// No earlier waiter could take what this one finds free: the machine was settled before, and the slot that it
		// may just have given back is not one of its candidates. Only others of its principal could, if that has a limit.
		if chosen := mo.choose(fit, r.session, r.class); chosen != nil && !defers {
			m.give(r, mo, chosen)
			return Outcome{Code: Granted, Grant: r.grant()}
		}
		why = hope(fit, r.session)
	}
	if why != RefusalNone {
		m.drop(r)
		return refused(why)
	}
	m.wait(r, fit, dropped)
	if defers {
		for _, c := range r.lane.candidates {
			m.stir(c.provider)
		}
	}
	return Outcome{Code: Queued, Enqueue: r.enqueue}
}

// reattach gives a detached waiter to a session: same place, same deadline.
func (m *Machine) reattach(r *request, s *session) Outcome {
	m.unwait(r)
	r.session, r.lastEdge, r.detachedUntil = s, s.edge, 0
	return m.resume(r)
}

// cancel takes a request out of the queue if it waits.
func (m *Machine) cancel(s *session, c *Cancel) Outcome {
	r := m.requests[c.Request]
	switch {
	case r == nil:
		return Outcome{Code: Unknown}
	case r.state == StateDetached, r.state == StateWaiting && r.session == s:
		m.unwait(r)
		m.drop(r)
		return Outcome{Code: Removed}
	case !r.waits() && r.link.edge == s.edge:
		return Outcome{Code: Holds, Grant: r.grant()}
	}
	return Outcome{Code: Unknown}
}
