package fsm

import "slices"

// batchesMax is how many answered batches a session keeps.
const batchesMax = 4096

// anySession is the id of the session that stands for all of them: background requests wait for whichever has a link.
const anySession = ^SessionID(0)

// session is one life of an edge.
type session struct {
	id         SessionID
	edge       EdgeID
	nonce      uint64
	openedAt   Time
	openedWall int64
	graceUntil Time // 0 once the startup grace is over
	nextSeq    uint64
	ackBelow   uint64
	batches    []BatchRow
}

// batch applies a session's batch exactly once and returns its outcomes.
func (m *Machine) batch(b *Batch) []Outcome {
	if b.Session == 0 {
		return m.commands(nil, b.Commands)
	}
	s := m.sessions[b.Session]
	switch {
	case s == nil:
		return all(SessionEnded, len(b.Commands))
	case b.Seq > s.nextSeq:
		return all(SequenceGap, len(b.Commands))
	case b.Seq == s.nextSeq:
		return m.nextBatch(s, b)
	}
	for _, old := range s.batches {
		if old.Seq != b.Seq {
			continue
		}
		if old.Sum != b.Sum || len(old.Outcomes) != len(b.Commands) {
			return all(SequenceCollision, len(b.Commands))
		}
		return old.Outcomes
	}
	return all(SequenceForgotten, len(b.Commands))
}

func (m *Machine) nextBatch(s *session, b *Batch) []Outcome {
	s.nextSeq++
	if b.AckBelow > s.ackBelow {
		s.ackBelow = min(b.AckBelow, b.Seq)
	}
	forget := 0
	for forget < len(s.batches) && (s.batches[forget].Seq < s.ackBelow || len(s.batches)-forget >= batchesMax) {
		s.batches[forget] = BatchRow{}
		forget++
	}
	s.batches = s.batches[forget:]
	if forget > 0 && len(s.batches) > 0 {
		s.ackBelow = max(s.ackBelow, s.batches[0].Seq)
	}
	out := m.commands(s, b.Commands)
	if m.sessions[s.id] == s { // it may have ended itself
		s.batches = append(s.batches, BatchRow{Seq: b.Seq, Sum: b.Sum, Outcomes: out})
	}
	return out
}

func all(c Code, n int) []Outcome {
	out := make([]Outcome, n)
	for i := range out {
		out[i].Code = c
	}
	return out
}

// openSession begins a life of an edge.
func (m *Machine) openSession(c *OpenSession) Outcome {
	if c.Edge == "" {
		return refused(RefusalMalformed)
	}
	if old := m.edges[c.Edge]; old != nil {
		if old.nonce == c.Nonce {
			return Outcome{Code: SessionOpened, Session: old.id}
		}
		m.closeSession(old, ReasonSessionEnded, false, false, 0)
	}
	id := max(SessionID(m.index), m.lastSession+1) // an entry may open several
	m.lastSession = id
	s := &session{id: id, edge: c.Edge, nonce: c.Nonce, openedAt: m.now, openedWall: m.wall, nextSeq: 1, ackBelow: 1}
	if grace := m.pool().StartupGrace; grace > 0 {
		s.graceUntil = m.now + grace
	}
	m.sessions[id] = s
	m.edges[c.Edge] = s
	m.spansMoved = true
	return Outcome{Code: SessionOpened, Session: id}
}

func (m *Machine) endSession(c *EndSession) Outcome {
	s := m.edges[c.Edge]
	if s == nil || s.id != c.Session {
		return Outcome{Code: Stale}
	}
	m.closeSession(s, c.Reason, c.Alive, c.Alive && c.Apart, c.Since)
	return Outcome{Code: Done}
}

// closeSession ends a session: its links are fenced, its waiters detached; its leases go the way of their links.
func (m *Machine) closeSession(s *session, why Reason, alive, apart bool, since Time) {
	m.emit(Effect{Kind: EffectSessionEnded, Session: s.id, Edge: s.edge, Reason: why})
	for _, id := range sortedKeys(m.nodes) {
		for _, l := range slices.Clone(m.nodes[id].links) {
			if l.session == s {
				l.apart = apart
				m.fence(l, ReasonSessionEnded, alive)
			}
		}
	}
	var ghosts []*request
	queue := m.waiters()
	for _, r := range queue {
		if r.session == s {
			m.detach(r)
			ghosts = append(ghosts, r)
		}
	}
	if since > 0 {
		m.newcomers(ghosts, queue, since)
	}
	for _, id := range sortedKeys(m.leases) { // those of links fenced before
		if r := m.leases[id]; r.session == s {
			r.session = nil
		}
	}
	for _, key := range m.laneKeys() {
		if m.lanes[key].session == s {
			delete(m.lanes, key)
		}
	}
	delete(m.sessions, s.id)
	m.spansMoved = true
	delete(m.edges, s.edge)
}

// detach takes a waiter from its session; it keeps its place for a while.
func (m *Machine) detach(r *request) {
	turn, last := r.who.turn, m.lastTurn
	m.unwait(r)
	r.session = nil
	r.detachedUntil = m.now + m.pool().ReattachWindow
	m.waitAgain(r)
	r.who.turn, m.lastTurn = turn, last // it never left
}

// waitAgain puts a waiter that was taken out of the queue back, as it is now.
func (m *Machine) waitAgain(r *request) {
	var fit []*candidate
	var dropped string
	if mo := m.models[r.model]; mo != nil {
		fit, dropped, _ = m.filter(mo, r)
	}
	m.wait(r, fit, dropped)
}
