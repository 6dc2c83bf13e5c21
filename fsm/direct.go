package fsm

// admitDirect decides about a request for one provider, beside the queue: it gets a slot now or is refused. Only a
// provider without a bound can be addressed so; at any other it would overtake those who wait for it.
func (m *Machine) admitDirect(s *session, c *Admit) Outcome {
	if m.requests[c.Request] != nil {
		return refused(RefusalInProgressElsewhere)
	}
	p := m.providers[c.Provider]
	if p == nil || p.removed || p.Capacity > 0 {
		return refused(RefusalModelNotFound)
	}
	r := m.fresh(s, c)
	r.direct = true
	why := p.refusal(r)
	switch {
	case !r.who.may(ModelID("provider:" + string(p.ID))):
		why = RefusalModelNotFound
	case why == RefusalNone && r.who.full():
		why = RefusalPrincipalLimit // it never waits
	}
	if why != RefusalNone {
		m.recycle(r)
		return refused(why)
	}
	r.enqueue = m.nextEnqueue
	m.nextEnqueue++
	r.enqueuedAt, r.enqueuedWall, r.enqueuedIndex = m.now, m.wall, m.index
	m.requests[r.id] = r
	m.give(r, nil, &candidate{provider: p, served: c.Served})
	return Outcome{Code: Granted, Grant: r.grant()}
}

// refusal tells why the provider can't have a direct request now, RefusalNone if it can.
func (p *provider) refusal(r *request) Refusal {
	switch p.fits(r) {
	case WhyIncapable:
		return RefusalUnsupported
	case WhyTooSmall:
		return RefusalContextTooLong
	}
	ready := p.node.ready(r.session) != nil
	switch {
	case !ready || !p.Enabled || p.health != Healthy:
		return RefusalUnavailable
	case p.drained():
		return RefusalDraining
	case !p.free(r.class):
		return RefusalUnavailable // its long slots are taken, and it has no queue of its own
	}
	return RefusalNone
}
