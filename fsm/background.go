package fsm

// submit stores a background response.
func (m *Machine) submit(c *Submit) Outcome {
	q := c.Request
	q.Request = RequestID(c.Response)
	switch {
	case c.Response == "" || len(c.Response) > RequestIDMax || len(q.Principal) > NameMax || len(q.Token) > NameMax || q.Provider != "":
		return refused(RefusalMalformed)
	case m.vault.by[c.Response] != nil, m.requests[q.Request] != nil:
		return refused(RefusalConflict)
	}
	mo := m.models[q.Model]
	if mo == nil {
		return refused(RefusalModelNotFound)
	}
	q.MaxWait = 0 // nobody waits for it at the other end
	r := m.fresh(m.cluster, &q)
	fit, dropped, why := m.filter(mo, r)
	if len(fit) > 0 {
		why = m.chance(mo, r, fit)
	}
	if !r.who.may(q.Model) {
		why = RefusalModelNotFound
	}
	if why == RefusalNone && !m.roomFor(c.size()+ResponseOverhead) {
		why = RefusalStoreFull
	}
	if why != RefusalNone {
		m.recycle(r)
		return refused(why)
	}
	row := m.store(c.Response, q.Principal, &c.Payload)
	row.Background = true
	m.vault.live.add(row)
	r.response = row
	r.enqueue = m.nextEnqueue
	m.nextEnqueue++
	r.enqueuedAt, r.enqueuedWall, r.enqueuedIndex = m.now, m.wall, m.index
	m.requests[r.id] = r
	m.waitCluster(r, fit, dropped)
	return Outcome{Code: Queued, Enqueue: r.enqueue}
}

// chance tells whether a new request of the cluster may wait, as for one of a session. Of each kind max_queue may: what
// waits for a node that is away for hours must not keep those out who are there now.
func (m *Machine) chance(mo *model, r *request, fit []*candidate) Refusal {
	if !r.who.full() && mo.choose(fit, m.cluster, r.class) != nil {
		return RefusalNone
	}
	if why := hope(fit, m.cluster); why != RefusalNone && !m.young() {
		return why
	}
	switch {
	case r.who.crowded():
		return RefusalPrincipalLimit
	case m.background >= m.pool().MaxQueue:
		return RefusalQueueFull
	}
	return RefusalNone
}

// young tells whether some session is in its startup grace.
func (m *Machine) young() bool {
	for _, id := range sortedKeys(m.sessions) {
		if m.sessions[id].graceUntil > 0 {
			return true
		}
	}
	return false
}

// waitCluster puts a request of the cluster into the queue; settling grants it if it can be.
func (m *Machine) waitCluster(r *request, fit []*candidate, dropped string) {
	m.wait(r, fit, dropped)
	for _, c := range r.lane.candidates {
		m.stir(c.provider)
	}
}

// unfinished tells whether a request is that of a background response that has not ended.
func (r *request) unfinished() bool { return r.response != nil && !r.response.Status.Final() }

// again puts the request of a background response back to its place after its lease went back before the response ended.
// lost = it may have run; a request that takes whoever runs it down must come to an end.
func (m *Machine) again(r *request, lost bool) {
	if lost {
		r.response.Lost++
	}
	why := RefusalModelNotFound
	var fit []*candidate
	var dropped string
	if mo := m.models[r.model]; mo != nil {
		fit, dropped, why = m.filter(mo, r)
		if len(fit) == 0 && len(r.excluded) > 0 { // all have refused it once: they are asked anew
			r.excluded = nil
			fit, dropped, why = m.filter(mo, r)
		}
	}
	switch {
	case r.response.Lost >= ResponseLostMax:
		why = RefusalLost
	case len(fit) > 0 || why == RefusalUnavailable:
		r.session, r.lastEdge = m.cluster, ""
		m.waitCluster(r, fit, dropped)
		return
	}
	m.fail(r.response, why)
	m.drop(r)
}

// fail ends a background response that the machine gives up.
func (m *Machine) fail(row *response, why Refusal) {
	row.Cause = why
	m.endResponse(row, ResponseFailed)
}

// endResponse moves a response to those that have ended.
func (m *Machine) endResponse(row *response, s ResponseStatus) {
	m.vault.live.remove(row)
	m.vault.lastOrder++
	row.Status, row.Since, row.Order = s, m.now, m.vault.lastOrder
	m.vault.ended.add(row)
	m.writes = append(m.writes, Write{Response: row.ID, From: row.Events}) // whoever waits for events hears of it
}

// progress adds to a background response.
func (m *Machine) progress(c *Progress) Outcome {
	row := m.vault.by[c.Response]
	if row == nil {
		return Outcome{Code: Unknown}
	}
	r := m.requests[RequestID(c.Response)]
	final := c.Status.Final()
	switch {
	case row.Status.Final(), r == nil || r.response != row:
		return Outcome{Code: Stale}
	case c.Lease != r.lease && c.Lease != 0, c.Lease == 0 && !final:
		return Outcome{Code: Stale}
	}
	more := c.size()
	if c.Object != nil {
		more -= row.Object
	}
	// The end is kept even beyond the bound: it must be told, and what has ended makes room for the next one.
	if !m.roomFor(more) && !final {
		return refused(RefusalStoreFull)
	}
	m.writes = append(m.writes, Write{Response: row.ID, From: row.Events, Payload: c.Payload})
	row.Events += c.Count
	row.Bytes += more
	m.vault.bytes += more
	if c.Object != nil {
		row.Object = int64(len(c.Object))
	}
	if !final {
		row.Status = c.Status
		return Outcome{Code: Done}
	}
	m.endResponse(row, c.Status)
	m.stopRun(r, c.Lease == 0)
	return Outcome{Code: Done}
}

// stopRun is the end of the request of a response that has ended or is forgotten: it leaves the queue, or its run is told
// to end.
func (m *Machine) stopRun(r *request, tell bool) {
	switch {
	case r.waits():
		m.unwait(r)
		m.drop(r)
	case tell:
		m.emit(Effect{Kind: EffectUnwanted, Session: r.addressee(), Edge: r.lastEdge, Request: r.id, Grant: r.grant()})
	}
}
