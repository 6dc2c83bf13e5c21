package fsm

import "slices"

// vault is what the machine knows of the stored responses.
type vault struct {
	by        map[ResponseID]*response
	live      responses
	ended     responses
	bytes     int64
	lastOrder uint64
}

// responses is a line of them, oldest first.
type responses struct {
	head, tail *response
	n          int
}

func (l *responses) add(r *response) {
	r.prev, r.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = r
	} else {
		l.head = r
	}
	l.tail = r
	l.n++
}

func (l *responses) remove(r *response) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.tail = r.prev
	}
	r.prev, r.next = nil, nil
	l.n--
}

func (v *vault) line(r *response) *responses {
	if r.Status.Final() {
		return &v.ended
	}
	return &v.live
}

// responsesMax returns how many bytes responses may count for.
func (m *Machine) responsesMax() int64 {
	if b := m.config.Pool.ResponsesBytes; b > 0 {
		return b
	}
	return ResponsesBytes
}

// retention is how long a response is kept after its end, and how long one may take to end.
func (m *Machine) retention() Time {
	if t := m.config.Pool.ResponsesRetention; t > 0 {
		return t
	}
	return ResponsesRetention
}

// makeRoom drops the oldest responses that have ended until more bytes fit, and tells whether they do.
func (m *Machine) makeRoom(more int64) bool {
	limit := m.responsesMax()
	for m.vault.bytes+more > limit && m.vault.ended.head != nil {
		m.forgetResponse(m.vault.ended.head)
	}
	return m.vault.bytes+more <= limit
}

// roomFor tells whether more bytes fit once what has ended is gone, and makes room only then.
func (m *Machine) roomFor(more int64) bool {
	if m.vault.bytes+more <= m.responsesMax() {
		return true
	}
	live := int64(0)
	for r := m.vault.live.head; r != nil; r = r.next {
		live += r.Bytes
	}
	return live+more <= m.responsesMax() && m.makeRoom(more)
}

// store makes the row of a response, which is in no line yet.
func (m *Machine) store(id ResponseID, who PrincipalID, p *Payload) *response {
	m.vault.lastOrder++
	row := &response{ResponseRow: ResponseRow{
		ID: id, Principal: who, Events: p.Count, Bytes: p.size() + ResponseOverhead, Object: int64(len(p.Object)),
		Since: m.now, Wall: m.wall, Order: m.vault.lastOrder,
	}}
	m.vault.by[id] = row
	m.vault.bytes += row.Bytes
	m.writes = append(m.writes, Write{Response: id, Payload: *p})
	return row
}

// keep stores a response that has ended.
func (m *Machine) keep(c *Keep) Outcome {
	if c.Response == "" || len(c.Response) > RequestIDMax || len(c.Principal) > NameMax || !c.Status.Final() {
		return refused(RefusalMalformed)
	}
	if old := m.vault.by[c.Response]; old != nil {
		if !old.Status.Final() {
			return Outcome{Code: Stale}
		}
		m.forgetResponse(old)
	}
	if !m.roomFor(c.size() + ResponseOverhead) {
		return refused(RefusalStoreFull)
	}
	row := m.store(c.Response, c.Principal, &c.Payload)
	row.Status = c.Status
	m.vault.ended.add(row)
	return Outcome{Code: Done}
}

// forgetOne drops a response that a client deletes.
func (m *Machine) forgetOne(c *Forget) Outcome {
	row := m.vault.by[c.Response]
	if row == nil {
		return Outcome{Code: Unknown}
	}
	r := m.requests[RequestID(row.ID)]
	m.forgetResponse(row)
	if r != nil && r.response == row {
		m.unstore(r)
		if !row.Status.Final() {
			m.stopRun(r, true)
		}
	}
	return Outcome{Code: Done}
}

// unstore makes a request that of no response any more.
func (m *Machine) unstore(r *request) {
	if r.waits() {
		m.background--
	}
	r.response = nil
}

// forgetResponse drops a row and its payload.
func (m *Machine) forgetResponse(row *response) {
	m.vault.line(row).remove(row)
	delete(m.vault.by, row.ID)
	m.vault.bytes -= row.Bytes
	m.writes = append(m.writes, Write{Response: row.ID, Drop: true})
	if r := m.requests[RequestID(row.ID)]; r != nil && r.response == row && row.Status.Final() {
		m.unstore(r)
	}
}

// expireResponses ends those that did not end in time and drops those that have been kept for long enough, at most limit.
func (m *Machine) expireResponses(limit int) (ends int) {
	due := m.now - m.retention()
	for ; ends < limit && m.vault.live.head != nil && m.vault.live.head.Since <= due; ends++ {
		row := m.vault.live.head
		m.fail(row, RefusalExpired)
		if r := m.requests[RequestID(row.ID)]; r != nil && r.response == row {
			m.stopRun(r, true)
		}
	}
	for ; ends < limit && m.vault.ended.head != nil && m.vault.ended.head.Since <= due; ends++ {
		m.forgetResponse(m.vault.ended.head)
	}
	return ends
}

// nextResponse is when the next response has to end or go, 0 if none.
func (m *Machine) nextResponse() (next Time) {
	for _, row := range [...]*response{m.vault.live.head, m.vault.ended.head} {
		if row != nil {
			next = sooner(next, max(row.Since+m.retention(), 1))
		}
	}
	return next
}

func (m *Machine) restoreResponses(img *Image) {
	m.vault.lastOrder = img.LastOrder
	rows := slices.Clone(img.Responses)
	slices.SortFunc(rows, func(a, b ResponseRow) int {
		if a.Order < b.Order {
			return -1
		}
		return 1
	})
	for i := range rows {
		row := &response{ResponseRow: rows[i]}
		m.vault.by[row.ID] = row
		m.vault.bytes += row.Bytes
		m.vault.line(row).add(row)
	}
}

// checkResponses: every background response that has not ended has one request, which belongs to the cluster while it
// waits; the lines are in order; the bytes add up.
func (m *Machine) checkResponses(c *checker) {
	bytes, rows := int64(0), 0
	for _, final := range [...]bool{false, true} {
		l := &m.vault.live
		if final {
			l = &m.vault.ended
		}
		n := 0
		for r := l.head; r != nil; r = r.next {
			n++
			bytes += r.Bytes
			c.that(m.vault.by[r.ID] == r && r.Status.Final() == final, "response %s is %s and in the wrong line", r.ID, r.Status)
			c.that(r.next == nil || r.Order < r.next.Order && r.Since <= r.next.Since, "response %s is out of order", r.ID)
			c.that(r.Order <= m.vault.lastOrder, "response %s has an order that was never given", r.ID)
			c.that(r.Bytes >= ResponseOverhead && r.Object <= r.Bytes && r.Events >= 0, "response %s counts %d bytes, %d events", r.ID, r.Bytes, r.Events)
			c.that(final || r.Background, "response %s has not ended and is not a background one", r.ID)
			q := m.requests[RequestID(r.ID)]
			c.that(final || q != nil && q.response == r, "response %s is %s and has no request", r.ID, r.Status)
		}
		c.that(n == l.n, "%d responses are in line, %d counted", n, l.n)
		rows += n
	}
	c.that(rows == len(m.vault.by), "%d responses are in line, %d are filed", rows, len(m.vault.by))
	c.that(bytes == m.vault.bytes, "responses count %d bytes, have %d", m.vault.bytes, bytes)
	for _, id := range sortedKeys(m.requests) {
		r := m.requests[id]
		c.that((r.session == m.cluster) == (r.unfinished() && r.waits()), "request %s is %s and the cluster's, or not", id, r.state)
		c.that(r.response == nil || m.vault.by[ResponseID(id)] == r.response, "request %s has a forgotten response", id)
	}
}
