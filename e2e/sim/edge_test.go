package sim

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"iop/edged/admission"
	"iop/fsm"
	"iop/storage"
)

// edge is a replica with the process around it: admission, links, and the batches of its session.
type edge struct {
	w     *world
	n     int
	id    fsm.EdgeID
	up    bool
	cut   bool      // parted from the other replicas
	heard time.Time // by the leader
	since fsm.Time  // cluster time then
	lag   int       // rounds in which it applies nothing

	digests  map[uint64][32]byte // of its own machine, by index
	machine  *fsm.Machine
	at       int    // records applied
	snapshot []byte // newest on disk
	snapAt   int

	adm     *admission.Admission
	session *session   // nil until it is open
	plain   *session   // commands of no session
	lanes   []*session // all that have something under way
	opening bool
	busy    int // so many proposals are refused as overloaded

	links  map[fsm.NodeID]*conn
	old    map[*conn]bool
	last   map[fsm.NodeID]fsm.Generation // newest registered here
	fenced map[fsm.NodeID]fsm.Generation // newest that the machine fenced
	turns  map[fsm.NodeID]bool           // a registration is under way
	runs   map[fsm.LeaseID]*exchange
}

var (
	errOverloaded = errors.New("sim: overloaded")
	errEnded      = errors.New("sim: session ended")
)

// open starts the process: it reads its disk and asks for a session.
func (e *edge) open() {
	if e.up {
		return
	}
	e.up, e.at, e.machine, e.digests = true, 0, fsm.New(), map[uint64][32]byte{}
	if e.snapshot != nil {
		_, img, err := storage.DecodeState(bytes.NewReader(e.snapshot))
		if err == nil {
			e.machine, err = fsm.Restore(img)
		}
		if err != nil {
			e.w.failf("snapshot of %s can't be read: %v", e.id, err)
		}
		if err := e.machine.Check(); err != nil {
			e.w.failf("restored: %v", err)
		}
		e.at = e.snapAt
		e.w.tally["restored from a snapshot"]++
	}
	e.old = map[*conn]bool{}
	e.links, e.last, e.fenced = map[fsm.NodeID]*conn{}, map[fsm.NodeID]fsm.Generation{}, map[fsm.NodeID]fsm.Generation{}
	e.turns, e.runs = map[fsm.NodeID]bool{}, map[fsm.LeaseID]*exchange{}
	e.adm = admission.New(admission.Options{Translate: translate})
	e.plain = &session{edge: e, next: uint64(e.n+1)<<32 + e.w.nonce<<16}
	e.session, e.opening, e.lanes, e.busy = nil, false, []*session{e.plain}, 0
	if e.w.log.leader < 0 && e.majority() {
		e.w.log.lead(e.n, false, e.w.nonce%2 == 0)
	} else {
		e.apply(1 << 30) // the log so far; nobody waits for anything in it
	}
	e.ask()
}

func translate(err error) error {
	switch {
	case errors.Is(err, errOverloaded):
		return admission.ErrOverloaded
	case errors.Is(err, errEnded):
		return admission.ErrSessionEnded
	}
	return err
}

// kill ends the process with everything in it.
func (e *edge) kill() {
	if !e.up {
		return
	}
	e.up = false
	e.w.tally["edges killed"]++
	if e.w.log.leader == e.n {
		e.w.log.lead(-1, true, false)
	}
	for _, c := range append(e.conns(), e.oldConns()...) {
		c.edgeGone = true
	}
	for _, n := range slices.Concat(e.w.nodes, e.w.twins) {
		if c := n.conns[e]; c != nil {
			c.edgeGone = true
		}
	}
	for _, l := range e.lanes {
		l.ended = true
	}
	for _, x := range e.exchanges() {
		x.say(verdict{why: fsm.ReasonCanceled})
	}
	e.runs = map[fsm.LeaseID]*exchange{}
	for _, c := range e.w.clients {
		if c.edge == e && !c.over() {
			c.crashed = true
			c.cancel()
		}
	}
	e.machine = nil
}

// ask opens a session.
func (e *edge) ask() {
	if e.opening || e.session != nil {
		return
	}
	e.opening = true
	e.w.nonce++
	e.plain.take(proposal{cmd: &fsm.OpenSession{Edge: e.id, Nonce: e.w.nonce}, to: func(o fsm.Outcome, err error) {
		e.opening = false
		if err != nil || o.Code != fsm.SessionOpened {
			e.w.failf("%s can't open a session: %v %v", e.id, o.Code, err)
		}
		e.session = &session{edge: e, id: o.Session}
		e.lanes = append(e.lanes, e.session)
		e.adm.Attach(e.session)
		e.w.tally["sessions"]++
	}})
}

// apply takes up to n committed entries.
func (e *edge) apply(n int) {
	if !e.majority() {
		return
	}
	for ; e.up && n > 0 && e.at < len(e.w.log.records); n-- {
		r := &e.w.log.records[e.at]
		entry := e.w.log.decode(r)
		res := e.machine.Apply(entry)
		e.at++
		if e.at%7 == 0 || e.at == len(e.w.log.records) {
			e.digests[r.index] = e.machine.Digest()
			if e.digests[r.index] != r.digest {
				e.w.failf("I9: %s differs from the others at index %d", e.id, r.index)
			}
		}
		e.checks(res.Checks)
		effects := slices.Clone(res.Effects)
		for i := range entry.Batches {
			e.answer(&entry.Batches[i], res.Outcomes[i])
		}
		e.hear(effects)
	}
}

// answer gives outcomes to those who wait for them.
func (e *edge) answer(b *fsm.Batch, outcomes []fsm.Outcome) {
	for _, l := range e.lanes {
		i := slices.IndexFunc(l.flight, func(f *sent) bool { return l.id == b.Session && f.batch.Seq == b.Seq })
		if i < 0 {
			continue
		}
		f := l.flight[i]
		switch outcomes[0].Code {
		case fsm.SequenceGap, fsm.SequenceCollision: // it is sent again
			return
		case fsm.SequenceForgotten:
			e.w.failf("the outcomes of batch %d/%d are forgotten, but %s never heard them", b.Session, b.Seq, e.id)
		}
		if len(outcomes) != len(f.to) {
			return // a batch of no session with the same number
		}
		l.flight = slices.Delete(l.flight, i, i+1)
		for i, to := range f.to {
			var err error
			if outcomes[i].Code == fsm.SessionEnded {
				err = errEnded
			}
			if to != nil {
				to(outcomes[i], err)
			}
		}
		return
	}
}

// hear takes the effects for the session, as links and admission do.
func (e *edge) hear(effects []fsm.Effect) {
	for i := range effects {
		x := effects[i : i+1]
		if e.session == nil {
			continue
		}
		if x[0].Kind == fsm.EffectLinkFenced {
			e.linkFenced(&x[0])
		}
		if x[0].Session != e.session.id {
			continue
		}
		over := x[0].Kind == fsm.EffectSessionEnded
		if over {
			for _, c := range e.conns() {
				c.retire()
			}
			e.session.end()
			e.session = nil
		}
		e.adm.Effects(x)
		if over {
			e.ask()
		}
	}
}

// snap takes a snapshot.
func (e *edge) snap() {
	if !e.up {
		return
	}
	var b bytes.Buffer
	if err := storage.EncodeState(&b, "c", e.machine.Image()); err != nil {
		e.w.failf("snapshot: %v", err)
	}
	e.snapshot, e.snapAt = b.Bytes(), e.at
	e.w.tally["snapshots"]++
}

// flush sends what is queued, up to n commands of each session.
func (e *edge) flush(n int) {
	for _, l := range e.lanes {
		l.flush(n)
	}
	e.lanes = slices.DeleteFunc(e.lanes, func(l *session) bool { return l.ended && len(l.flight) == 0 })
}

// resend sends again what has no outcome.
func (e *edge) resend() {
	for _, l := range e.lanes {
		for _, f := range l.flight {
			e.w.tally["batches sent again"]++
			l.send(f)
		}
	}
}

// propose has a command of the session carried out, or of no session if that is allowed; to may be nil.
func (e *edge) propose(c fsm.Command, to func(fsm.Outcome, error)) {
	l := e.session
	switch c.(type) {
	case *fsm.ApplyConfig, *fsm.Drain, *fsm.EndSession, *fsm.RaiseLevel, *fsm.DigestCheck:
		l = e.plain
	}
	if l == nil {
		if to != nil {
			to(fsm.Outcome{}, errEnded)
		}
		return
	}
	l.take(proposal{cmd: c, to: to})
}
