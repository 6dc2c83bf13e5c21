package fsm

// Step is what one command of an entry brought about, as ApplyWatched shows it.
type Step struct {
	Batch   int // of the entry
	Command int // of the batch
	Outcome *Outcome
	Effects []Effect // valid during the call
	// Idle: the batch changed nothing. It was answered before, or refused as a whole.
	Idle bool
}

// ApplyWatched is Apply for those who tell what happened: see is called after each command, when the machine is settled
// and can be read. It must not keep what a step points to.
func (m *Machine) ApplyWatched(e *Entry, see func(Step)) Result {
	batch := 0
	m.seen = func(command int, o *Outcome, from int) {
		see(Step{Batch: batch, Command: command, Outcome: o, Effects: m.effects[from:]})
	}
	defer func() { m.seen = nil }()
	m.begin(e)
	res := Result{Outcomes: make([][]Outcome, len(e.Batches))}
	for i := range e.Batches {
		batch = i
		b := &e.Batches[i]
		fresh := m.takes(b)
		res.Outcomes[i] = m.batch(b)
		if fresh {
			continue
		}
		for k := range res.Outcomes[i] {
			see(Step{Batch: i, Command: k, Outcome: &res.Outcomes[i][k], Idle: true})
		}
	}
	res.Effects, res.Checks = m.effects, m.checks
	return res
}

// takes tells whether the batch is the next one of its session.
func (m *Machine) takes(b *Batch) bool {
	if b.Session == 0 {
		return true
	}
	s := m.sessions[b.Session]
	return s != nil && b.Seq == s.nextSeq
}

// Row returns what is known of a request in being, without what it would take to number its place.
func (m *Machine) Row(id RequestID) (RequestRow, bool) {
	r := m.requests[id]
	if r == nil {
		return RequestRow{}, false
	}
	return r.row(), true
}

// NextLease returns the id that the next lease will have.
func (m *Machine) NextLease() LeaseID { return m.nextLease }

// SessionEdge returns whose session it is, "" if it is not current.
func (m *Machine) SessionEdge(id SessionID) EdgeID {
	if s := m.sessions[id]; s != nil {
		return s.edge
	}
	return ""
}
