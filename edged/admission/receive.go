package admission

import (
	"errors"
	"time"

	"iop/fsm"
)

// admitted, canceled and released are the ticket as the receiver of its commands.
type (
	admitted ticket
	canceled ticket
	released ticket
)

// Receive takes the outcome of the Admit.
func (r *admitted) Receive(o fsm.Outcome, err error) {
	t := (*ticket)(r)
	switch err = t.a.problem(o, err); {
	case err == nil && o.Code == fsm.Refused && o.Refusal == fsm.RefusalInProgressElsewhere && t.mine():
		t.propose(toProbe)
	case err == nil:
		t.answered(o)
	case errors.Is(err, ErrSessionEnded):
		t.asked = true
		t.renew(toAdmit)
	case passing(err) && t.enqueue != 0:
		t.again(func() { t.propose(toAdmit) })
	default:
		t.finish(err)
	}
}

// answered takes Granted, Queued or Refused.
func (t *ticket) answered(o fsm.Outcome) {
	switch o.Code {
	case fsm.Granted:
		t.granted(o.Grant)
	case fsm.Queued:
		t.queued(o)
	case fsm.Refused:
		t.finish(&Refused{Why: o.Refusal})
	default:
		t.finish(ErrFailed)
	}
}

func (t *ticket) queued(o fsm.Outcome) {
	t.mu.Lock()
	t.phase, t.position, t.enqueue = waiting, o.Position, o.Enqueue
	t.mu.Unlock()
	if turned := t.a.enter(t); turned {
		t.turn(ErrStopping)
	}
	t.rouse()
	t.undo()
}

// granted is a new lease: for Run, or to be given back if Run has left.
func (t *ticket) granted(g fsm.Grant) {
	t.mu.Lock()
	if t.phase != asking && t.phase != waiting {
		t.mu.Unlock()
		return
	}
	t.phase, t.grant, t.home = granted, g, t.a.now.Load()
	t.mu.Unlock()
	t.a.m.Granted(g.Class.String())
	t.rouse()
	t.undo()
}

// finish is the end of the ticket; only the first counts.
func (t *ticket) finish(err error) {
	t.mu.Lock()
	if t.phase == over {
		t.mu.Unlock()
		return
	}
	if !t.gone {
		t.err = err
	}
	t.phase = over
	turned := t.turned
	t.mu.Unlock()
	t.a.leave(t)
	t.rouse()
	if !turned {
		t.a.ended(t.admit.Request)
	}
}

// Receive takes the outcome of the Cancel.
func (r *canceled) Receive(o fsm.Outcome, err error) {
	t := (*ticket)(r)
	err = t.a.problem(o, err)
	if errors.Is(err, ErrSessionEnded) {
		t.a.detach(t.at[toCancel])
		t.recancel()
		return
	}
	if passing(err) {
		t.again(t.recancel)
		return
	}
	t.mu.Lock()
	t.canceling = false
	ph := t.phase
	t.mu.Unlock()
	switch {
	case ph != waiting && o.Code == fsm.Removed && err == nil:
		t.a.mistaken(t.admit.Request)
	case ph != waiting: // a grant or an end overtook it
	case o.Code == fsm.Holds && err == nil:
		t.granted(o.Grant) // it stays in the table until the effect of this same entry takes it out
	default: // removed, or nothing is left to be removed
		t.finish(err)
	}
}

// recancel proposes the Cancel once more, unless the place is another's by now: its session has ended, and somebody came
// again with the same name. The place is his, or soon will be, and he would be canceled in it.
func (t *ticket) recancel() {
	t.mu.Lock()
	still := t.phase == waiting
	t.canceling = still
	t.mu.Unlock()
	switch {
	case !still: // a grant or an end overtook it
	case t.at[toCancel].over.Load() && t.a.others(t.admit.Request):
		t.finish(nil)
	default:
		t.propose(toCancel)
	}
}

// others tells whether more than one request with a name has not come to its end here.
func (a *Admission) others(id fsm.RequestID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live[id] > 1
}

// mistaken has a request admitted anew that a Cancel removed in the place of an earlier one with its id: that one had
// ended in the log when the Cancel came there, but was not told yet when it was proposed. Nobody else would tell it.
func (a *Admission) mistaken(id fsm.RequestID) {
	t := a.take(id)
	if t == nil {
		return
	}
	t.mu.Lock()
	again := t.phase == waiting && !t.gone
	if again {
		t.phase = asking
	}
	t.mu.Unlock()
	if again {
		t.propose(toAdmit)
	} else {
		t.finish(nil)
	}
}

// Receive takes the outcome of the Release.
func (r *released) Receive(o fsm.Outcome, err error) {
	t := (*ticket)(r)
	err = t.a.problem(o, err)
	if errors.Is(err, ErrSessionEnded) || passing(err) {
		t.a.m.ReleaseRetried()
	}
	if errors.Is(err, ErrSessionEnded) {
		t.renew(toRelease)
		return
	}
	if passing(err) {
		t.again(func() { t.propose(toRelease) })
		return
	}
	if err != nil {
		t.finish(err)
		return
	}
	if o.Code != fsm.AlreadyReleased {
		t.a.m.Returned(t.give.Reason.String())
		t.a.rate.add(time.Now())
	}
	switch o.Code {
	case fsm.Returned, fsm.AlreadyReleased:
		t.lost()
	default:
		t.answered(o)
	}
}

// readmissionsMax is how often a request is admitted anew because its lease was lost before it could be requeued.
const readmissionsMax = 3

// lost is a lease that has gone back for good: the end, unless the request was to be requeued. Then its link was lost
// together with the lease, and it is admitted anew, at the place that it had if it ever waited.
func (t *ticket) lost() {
	t.mu.Lock()
	anew := t.phase == asking && !t.gone && t.readmitted < readmissionsMax
	asked := t.phase == asking
	t.readmitted++
	t.mu.Unlock()
	switch {
	case anew:
		t.propose(toAdmit)
	case asked:
		t.finish(&Refused{Why: fsm.RefusalUnavailable})
	default:
		t.finish(nil)
	}
}

// passing tells of an error that had no effect and will pass.
func passing(err error) bool { return errors.Is(err, ErrOverloaded) || errors.Is(err, ErrNoLeader) }

// Bounds of the pause before a refused release or cancel is proposed again.
const (
	backoffMin = 5 * time.Millisecond
	backoffMax = time.Second
)

// again does something after a pause that grows.
func (t *ticket) again(do func()) {
	t.mu.Lock()
	t.backoff = min(max(2*t.backoff, backoffMin), backoffMax)
	pause := t.backoff
	t.mu.Unlock()
	time.AfterFunc(pause, do)
}
