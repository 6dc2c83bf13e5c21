package storage

import (
	"slices"
	"sync"

	"iop/fsm"
)

// handover is what one entry, or one failure, has for people outside: outcomes first, then effects.
type handover struct {
	answers []answer
	effects []fsm.Effect
}

// answer is the outcomes of a batch, or the error that all of its commands end with.
type answer struct {
	batch    *batch
	outcomes []fsm.Outcome
	err      error
	to       Receiver // of a single command that never got into a batch
}

// dispatcher calls receivers and effects from one goroutine, in the order of the log, so that applying never waits for
// anybody outside. What waits here is bounded: an answer counts in the queue until it was given, so new requests are
// refused while too many are left; and of effects there can be at most two per request in being (granted, returned or
// ended), one per link and one per session, none of which can be begun again before the answers in front were given.
// So nothing is ever dropped here, and nobody has to be brought level again.
type dispatcher struct {
	queue    *queue
	watchers *watchers
	done     chan struct{}
	kick     chan struct{}
	sessions map[fsm.SessionID]*Session // belongs to run
	ended    []fsm.SessionID            // belongs to run: those whose last effects are in the handover under way

	mu      sync.Mutex
	waiting []handover
	closed  bool
	failed  bool
}

func newDispatcher(q *queue, w *watchers) *dispatcher {
	return &dispatcher{
		queue: q, watchers: w, done: make(chan struct{}), kick: make(chan struct{}, 1),
		sessions: map[fsm.SessionID]*Session{},
	}
}

// hand gives work to the dispatcher; it never blocks. It is false when the dispatcher has ended.
func (d *dispatcher) hand(h handover) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.failed {
		h.effects = nil
	}
	d.waiting = append(d.waiting, h)
	d.wake()
	return true
}

// fail hands over the last answers; effects that come later are not told any more.
func (d *dispatcher) fail(h handover) {
	d.hand(h)
	d.mu.Lock()
	d.failed = true
	d.mu.Unlock()
}

func (d *dispatcher) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// refuse tells receivers that there is no leader.
func (d *dispatcher) refuse(list []Receiver) {
	if len(list) == 0 {
		return
	}
	var h handover
	for _, to := range list {
		h.answers = append(h.answers, answer{to: to, err: ErrNoLeader})
	}
	d.hand(h)
}

// stop has run end when everything handed before was delivered.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.wake()
	<-d.done
}

func (d *dispatcher) run() {
	defer close(d.done)
	var spare []handover
	for range d.kick {
		for {
			d.mu.Lock()
			work, closed := d.waiting, d.closed
			d.waiting = spare[:0]
			d.mu.Unlock()
			if len(work) == 0 {
				if closed {
					return
				}
				spare = work
				break
			}
			for i := range work {
				d.deliver(&work[i])
				work[i] = handover{}
			}
			spare = work
		}
	}
}

func (d *dispatcher) deliver(h *handover) {
	d.configured(h.effects)
	for i := range h.answers {
		d.answer(&h.answers[i])
	}
	for rest := h.effects; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Session == rest[0].Session {
			n++
		}
		d.effects(rest[:n])
		rest = rest[n:]
	}
	for _, id := range d.ended {
		delete(d.sessions, id)
	}
	d.ended = d.ended[:0]
	d.watchers.publish(h.effects)
}

// configured tells every session of this process of a new configuration, before anybody hears what was decided under it.
func (d *dispatcher) configured(effects []fsm.Effect) {
	for i := range effects {
		if effects[i].Kind != fsm.EffectConfig {
			continue
		}
		for _, s := range d.sessions {
			if s.effects != nil {
				s.effects(effects[i : i+1])
			}
		}
	}
}

func (d *dispatcher) answer(a *answer) {
	if a.batch == nil {
		a.to.Receive(fsm.Outcome{}, a.err)
		return
	}
	a.batch.each(func(i int, to Receiver) {
		if a.err != nil {
			to.Receive(fsm.Outcome{}, a.err)
			return
		}
		o := a.outcomes[i]
		if opening, ok := to.(*opening); ok && o.Code == fsm.SessionOpened {
			opening.session.lane.id = o.Session
			d.sessions[o.Session] = opening.session
		}
		to.Receive(o, failure(o.Code))
	})
	d.queue.delivered(a.batch)
	if id := a.batch.lane.id; id != 0 && len(a.outcomes) > 0 && a.outcomes[0].Code == fsm.SessionEnded {
		d.end(id, a.batch.lane)
	}
}

// end has a session take nothing more. It stays known until what the same entry has for it was delivered: the answer that
// says so can come in front of the effects.
func (d *dispatcher) end(id fsm.SessionID, l *lane) {
	if s := d.sessions[id]; s != nil && !slices.Contains(d.ended, id) {
		close(s.over)
		d.ended = append(d.ended, id)
	}
	for _, b := range d.queue.end(l, ErrSessionEnded) {
		d.answer(&answer{batch: b, err: ErrSessionEnded})
	}
}

// failure turns codes that no receiver could do anything with into errors.
func failure(c fsm.Code) error {
	switch c {
	case fsm.SessionEnded:
		return ErrSessionEnded
	case fsm.SequenceGap, fsm.SequenceForgotten, fsm.SequenceCollision:
		return ErrOutOfStep
	}
	return nil
}

// fenced tells the sessions of this process of links that another edge's session lost: their nodes have to hear of it over
// the links that they have left.
func (d *dispatcher) fenced(run []fsm.Effect) {
	for i := range run {
		if run[i].Kind != fsm.EffectLinkFenced {
			continue
		}
		for id, s := range d.sessions {
			if id != run[i].Session && s.effects != nil {
				s.effects(run[i : i+1])
			}
		}
	}
}

// effects calls the addressee if it is of this process.
func (d *dispatcher) effects(run []fsm.Effect) {
	d.fenced(run)
	s := d.sessions[run[0].Session]
	if s == nil {
		return
	}
	ended := false
	for i := range run {
		ended = ended || run[i].Kind == fsm.EffectSessionEnded
	}
	if ended {
		d.end(s.lane.id, s.lane)
	}
	if s.effects != nil {
		s.effects(run)
	}
}
