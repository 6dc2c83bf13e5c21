package fsm

import "slices"

// ResponseID names a stored response; unique over all principals. At most RequestIDMax bytes. A background response's
// request has the same name.
type ResponseID string

// ResponseStatus is what has become of a response.
type ResponseStatus uint8

// The states of a response. The first two are not final.
const (
	ResponseQueued ResponseStatus = iota
	ResponseInProgress
	ResponseCompleted
	ResponseFailed
	ResponseCancelled
	ResponseIncomplete
)

var responseNames = [...]string{"queued", "in_progress", "completed", "failed", "cancelled", "incomplete"}

func (s ResponseStatus) String() string { return nameOf(responseNames[:], int(s)) }

// Final tells whether a response in this state stays as it is.
func (s ResponseStatus) Final() bool { return s >= ResponseCompleted }

// Bounds of stored responses.
const (
	// ResponsesBytes is responses.max_bytes where it is absent or 0.
	ResponsesBytes = 256 << 20
	// ResponsesRetention is responses.retention_ms where it is absent or 0.
	ResponsesRetention = 24 * 3600 * Second
	// ResponseOverhead is what a response counts for beside its bytes. So it also bounds how many there are.
	ResponseOverhead = 1024
	// ResponseLostMax is how often the run of a background response may be lost before it is given up.
	ResponseLostMax = 16
)

// Payload is what a command carries for the vault: bytes that mean nothing to the machine, and that it does not keep.
type Payload struct {
	Record []byte // what it takes to run the response and to tell what was asked
	Object []byte // the response as clients get it; nil = as before
	Events []byte // Count events, to be put behind those that there are
	Count  int64
}

func (p *Payload) size() int64 { return int64(len(p.Record) + len(p.Object) + len(p.Events)) }

// Write is a change of the vault, which storage carries out.
type Write struct {
	Response ResponseID
	Drop     bool  // forget all that there is of it; otherwise put what is not nil
	From     int64 // number of the first event
	Payload
}

type (
	// Submit stores a background response and puts its request into the queue, for the cluster: it is granted to whichever
	// session has the link that is used (EffectGranted), and goes back to its place when its run is lost. Request.Request
	// is not looked at. Outcome: Queued, or Refused as for an Admit, or conflict (the id is taken), or store_full.
	Submit struct {
		Response ResponseID
		Request  Admit
		Payload
	}

	// Progress adds to a background response, and ends it if the status is a final one. Lease is the one that it runs on;
	// with Lease 0 it must end it: a client cancels it. Outcome: Done, Unknown, Stale (it is final, or runs on another lease)
	// or Refused(store_full), which no final one is.
	Progress struct {
		Response ResponseID
		Lease    LeaseID
		Status   ResponseStatus
		Payload
	}

	// Keep stores a response that has ended. Outcome: Done, Stale (a background one of this id has not ended) or
	// Refused(store_full).
	Keep struct {
		Response  ResponseID
		Principal PrincipalID
		Status    ResponseStatus
		Payload
	}

	// Forget drops a response, and its request if it waits. Outcome: Done or Unknown.
	Forget struct{ Response ResponseID }
)

func (*Submit) command()   {}
func (*Progress) command() {}
func (*Keep) command()     {}
func (*Forget) command()   {}

// ResponseRow is a stored response; its payload is in the vault.
type ResponseRow struct {
	ID         ResponseID
	Principal  PrincipalID
	Background bool
	Status     ResponseStatus
	Cause      Refusal // why the machine ended it itself; RefusalNone = it did not
	Attempt    uint32  // grants of its request
	Lost       uint32  // runs that were lost
	Events     int64
	Bytes      int64 // that it counts for
	Object     int64 // of them, those of the object
	Since      Time  // when it was submitted, or ended
	Wall       int64 // wall clock when it was stored
	Order      uint64
}

// response is a stored response in its line: those that have not ended, or those that have, each by Order.
type response struct {
	ResponseRow
	prev, next *response
}

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

// Response returns a stored response, and the lease that it runs on, 0 if none.
func (m *Machine) Response(id ResponseID) (ResponseRow, LeaseID, bool) {
	row := m.vault.by[id]
	if row == nil {
		return ResponseRow{}, 0, false
	}
	if r := m.requests[RequestID(id)]; r != nil && r.response == row {
		return row.ResponseRow, r.lease, true
	}
	return row.ResponseRow, 0, true
}

// Responses returns all stored responses by Order.
func (m *Machine) Responses() []ResponseRow {
	if len(m.vault.by) == 0 {
		return nil
	}
	rows := make([]ResponseRow, 0, len(m.vault.by))
	for _, l := range [...]*responses{&m.vault.live, &m.vault.ended} {
		for r := l.head; r != nil; r = r.next {
			rows = append(rows, r.ResponseRow)
		}
	}
	slices.SortFunc(rows, func(a, b ResponseRow) int {
		if a.Order < b.Order {
			return -1
		}
		return 1
	})
	return rows
}

// ResponsesCount returns how many responses are stored, how many of them have not ended, and for how many bytes they count.
func (m *Machine) ResponsesCount() (stored, live int, bytes int64) {
	return len(m.vault.by), m.vault.live.n, m.vault.bytes
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
