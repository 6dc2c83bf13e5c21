package fsm

// newcomers lets the clients of a session that has ended, which came again elsewhere before anybody knew that it had,
// have their places: the first of those that came since then with a ghost's request exchanges with it. What has no
// Idempotency-Key can't be told from an identical request of somebody else. The ghost's client, should it come yet, has
// the other place; and as places and deadlines stay with the principal and its request, nobody else is touched.
func (m *Machine) newcomers(ghosts, queue []*request, since Time) {
	came := map[Fingerprint][]*request{}
	for _, r := range queue {
		if r.state == StateWaiting && r.session != m.cluster && r.enqueuedAt >= since && r.fingerprint != (Fingerprint{}) {
			came[r.fingerprint] = append(came[r.fingerprint], r)
		}
	}
	for _, ghost := range ghosts {
		line := came[ghost.fingerprint]
		for i, r := range line {
			if r.enqueue > ghost.enqueue && r.same(ghost) {
				m.exchange(r, ghost)
				came[ghost.fingerprint] = append(line[:i:i], line[i+1:]...)
				break
			}
		}
	}
}

// same tells whether two requests ask for the same in the same name.
func (r *request) same(o *request) bool {
	return r.fingerprint == o.fingerprint && r.fingerprint != (Fingerprint{}) && r.who == o.who && r.model == o.model && r.class == o.class
}

// exchange has two waiters of one principal change their places, with the deadlines that go with these.
func (m *Machine) exchange(a, b *request) {
	turn, last := a.who.turn, m.lastTurn
	m.unwait(a)
	m.unwait(b)
	a.enqueue, b.enqueue = b.enqueue, a.enqueue
	a.enqueuedAt, b.enqueuedAt = b.enqueuedAt, a.enqueuedAt
	a.enqueuedWall, b.enqueuedWall = b.enqueuedWall, a.enqueuedWall
	a.enqueuedIndex, b.enqueuedIndex = b.enqueuedIndex, a.enqueuedIndex
	a.maxWait, b.maxWait = b.maxWait, a.maxWait
	m.waitAgain(a)
	m.waitAgain(b)
	a.who.turn, m.lastTurn = turn, last // it never left
}

// restitute gives a detached waiter that is claimed by its id, so by its own client, the place that another one got in
// exchange for it, if that one still waits. Such a claim names an earlier place than the waiter has.
func (m *Machine) restitute(r *request, claimed Enqueue) {
	if claimed == 0 || claimed >= r.enqueue {
		return
	}
	for _, key := range m.laneKeys() {
		if o := m.lanes[key].waiters.find(claimed); o != nil {
			if o.same(r) {
				m.exchange(r, o)
			}
			return
		}
	}
}
