package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"iop/fsm"
)

// Effects takes what the log says later about this edge's requests. It must be called by the dispatcher that calls the
// receivers, for each entry after its outcomes.
func (a *Admission) Effects(effects []fsm.Effect) {
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case fsm.EffectGranted:
			if t := a.take(e.Grant.Request); t != nil {
				t.granted(e.Grant)
			}
		case fsm.EffectEnded:
			if t := a.take(e.Request); t != nil {
				t.finish(&Refused{Why: e.Refusal})
			}
		case fsm.EffectReturned:
			// The run itself ends through its link; its own release will then find nothing to return.
			a.m.Returned(e.Reason.String())
			a.rate.add(time.Now())
		case fsm.EffectSessionEnded:
			a.endWaiting(ErrSessionEnded)
		}
	}
}

// problem is the error in an answer, or nil.
func (a *Admission) problem(o fsm.Outcome, err error) error {
	if err != nil {
		if a.o.Translate != nil {
			err = a.o.Translate(err)
		}
		for _, known := range []error{ErrOverloaded, ErrSessionEnded, ErrFailed} {
			if errors.Is(err, known) {
				return err
			}
		}
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	switch o.Code {
	case fsm.SessionEnded:
		return ErrSessionEnded
	case fsm.SequenceGap, fsm.SequenceForgotten, fsm.SequenceCollision:
		return fmt.Errorf("%w: %s", ErrFailed, o.Code)
	}
	return nil
}

// enter puts a waiter into the table, behind an earlier one with its id: that one has ended in the log, and the effect
// that says so comes first. It tells whether waiters are sent away.
func (a *Admission) enter(t *ticket) (turned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := t.admit.Request
	t.next, t.tabled = nil, true
	if last := a.waiting[id]; last == nil {
		a.waiting[id] = t
	} else {
		for last.next != nil {
			last = last.next
		}
		last.next = t
	}
	return a.turned
}

// take removes the earliest waiter with an id; nil = there is none.
func (a *Admission) take(id fsm.RequestID) *ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.waiting[id]
	if t != nil {
		a.remove(t)
	}
	return t
}

// leave removes a waiter, if it is there.
func (a *Admission) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.tabled {
		a.remove(t)
	}
}

func (a *Admission) remove(t *ticket) {
	id := t.admit.Request
	if first := a.waiting[id]; first == t {
		if t.next == nil {
			delete(a.waiting, id)
		} else {
			a.waiting[id] = t.next
		}
	} else {
		for first.next != t {
			first = first.next
		}
		first.next = t.next
	}
	t.next, t.tabled = nil, false
}

// all lists the waiters.
func (a *Admission) all() []*ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*ticket, 0, len(a.waiting))
	for _, t := range a.waiting {
		for ; t != nil; t = t.next {
			list = append(list, t)
		}
	}
	return list
}

func (a *Admission) endWaiting(err error) {
	for _, t := range a.all() {
		t.finish(err)
	}
}

// Stop refuses new requests with ErrStopping. Those that wait or run go on.
func (a *Admission) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
}

// Drain stops, and waits until every request has ended and every release is in the log. When ctx ends first, it sends
// those that still wait away with ErrStopping, keeping their places for when their clients come again, and tells in its
// error how many requests are left running.
func (a *Admission) Drain(ctx context.Context) error {
	a.mu.Lock()
	a.stopping = true
	if a.open == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.idle == nil {
		a.idle = make(chan struct{})
	}
	idle := a.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	a.TurnAway()
	return fmt.Errorf("drain admission: %d requests still open: %w", a.Open(), context.Cause(ctx))
}

// TurnAway sends all that wait away with ErrStopping. Their places are kept for when their clients come again.
func (a *Admission) TurnAway() {
	a.mu.Lock()
	a.stopping, a.turned = true, true
	a.mu.Unlock()
	for _, t := range a.all() {
		t.turn(ErrStopping)
	}
}

// Close ends what is left after the session has ended or the log has failed: all that wait get ErrStopping.
func (a *Admission) Close() {
	a.TurnAway()
	a.endWaiting(ErrStopping)
}
