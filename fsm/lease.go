package fsm

// give makes a request the holder of a lease of the chosen candidate; the model is nil if it was addressed directly.
func (m *Machine) give(r *request, mo *model, c *candidate) {
	p := c.provider
	l := p.node.ready(r.session)
	if l == nil || !p.free(r.class) || r.who.full() {
		panic("fsm: grant of " + string(r.id) + " beyond the capacity of " + string(p.ID))
	}
	if mo != nil {
		mo.cursor = p.ID
	}
	if r.session == m.cluster {
		r.session, r.lastEdge = l.session, l.edge
		r.response.Attempt++
	}
	r.state = StateHeld
	r.lease = m.nextLease
	m.nextLease++
	r.provider, r.served = p, c.served
	r.grantedAt, r.grantedWall, r.grantedIndex = m.now, m.wall, m.index
	m.leases[r.lease] = r
	l.hold(r)
	p.take(r.class)
	m.took(r.who)
	p.granted++
	m.granted++
}

// giveBack returns a request's lease: it holds nothing then.
func (m *Machine) giveBack(r *request) {
	p := r.provider
	if p.inFlight == 0 || r.class == ClassLong && p.longInFlight == 0 {
		panic("fsm: provider " + string(p.ID) + " gave back more than it took")
	}
	p.inFlight--
	if r.class == ClassLong {
		p.longInFlight--
	}
	p.returned++
	m.returned++
	delete(m.leases, r.lease)
	r.link.unhold(r)
	r.lease, r.provider, r.served, r.link = 0, nil, "", nil
	m.gave(r.who)
	m.stir(p)
	m.forget(p)
}

func (p *provider) take(c Class) {
	p.inFlight++
	if c == ClassLong {
		p.longInFlight++
	}
}

// release returns a lease on the word of the edge that owns it. That the link was lost is no word about the run: a lease
// that counts on behind its lost link goes back when the node has reported, or with the fence timeout.
func (m *Machine) release(s *session, c *Release) Outcome {
	r := m.leases[c.Lease]
	if r == nil || r.link.edge != s.edge || r.state == StateFencing && c.Reason == ReasonLinkLost {
		return Outcome{Code: AlreadyReleased}
	}
	back := c.Requeue && c.Unsent
	requeue := c.Requeue && r.state == StateHeld && r.session == s && !back
	if back && r.response == nil {
		return m.putBack(r, s)
	}
	l, id := r.link, r.provider.ID
	m.giveBack(r)
	m.dropSpent(l)
	if r.unfinished() {
		lost := !c.Requeue && c.Reason != ReasonNotRun && c.Reason != ReasonNeverSent
		if requeue && !r.excludes(id) {
			r.excluded = append(r.excluded, id)
		}
		if lost {
			m.account(r, id, c.Reason, c.Usage)
		}
		m.again(r, lost)
		return Outcome{Code: Returned}
	}
	if !requeue || r.response != nil { // of a response that has ended nothing goes back
		m.account(r, id, c.Reason, c.Usage)
		m.drop(r)
		return Outcome{Code: Returned}
	}
	if !r.excludes(id) {
		r.excluded = append(r.excluded, id)
	}
	return m.resume(r)
}

// tellReturned tells a lease's session that it goes back for another reason than its release.
func (m *Machine) tellReturned(r *request, why Reason) {
	g := r.grant()
	m.emit(Effect{
		Kind: EffectReturned, Session: r.addressee(), Edge: r.lastEdge, Request: r.id, Grant: g, Reason: why,
		Node: g.Node, Generation: g.Generation,
	})
}

// reclaim returns a lease for another reason than its release and tells its session.
func (m *Machine) reclaim(r *request, why Reason) {
	m.tellReturned(r, why)
	p := r.provider.ID
	m.giveBack(r)
	m.account(r, p, why, Usage{})
	if r.unfinished() {
		m.again(r, true)
		return
	}
	m.drop(r)
}
