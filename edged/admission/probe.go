package admission

import (
	"errors"

	"iop/fsm"
)

// mine tells of a request whose name is taken in the log that only this ticket can have taken it: its session ended
// before the outcome of an Admit, or the grant to a waiter, was heard of here. A second request with the same name, here,
// would be none of its business.
func (t *ticket) mine() bool {
	t.a.mu.Lock()
	alone := t.a.live[t.admit.Request] == 1
	t.a.mu.Unlock()
	return alone && (t.enqueue != 0 || t.asked)
}

// probed is the ticket as the receiver of a Cancel that only asks: the machine answers which lease a request holds. Should
// the request wait after all, it is taken out and admitted anew.
type probed ticket

// Receive takes the outcome of the Cancel.
func (r *probed) Receive(o fsm.Outcome, err error) {
	t := (*ticket)(r)
	switch err = t.a.problem(o, err); {
	case errors.Is(err, ErrSessionEnded):
		t.a.detach(t.at[toProbe])
		t.propose(toAdmit)
	case passing(err):
		t.again(func() { t.propose(toProbe) })
	case err != nil:
		t.finish(err)
	case o.Code == fsm.Holds:
		t.unheard(o.Grant)
	case o.Code == fsm.Removed:
		t.propose(toAdmit)
	default:
		t.finish(&Refused{Why: fsm.RefusalInProgressElsewhere})
	}
}

// unheard gives a lease back that was granted without this edge hearing of it, over a link that went with its session. It
// was never used. The request is back at its place then.
func (t *ticket) unheard(g fsm.Grant) {
	t.a.m.Granted(g.Class.String())
	t.mu.Lock()
	t.phase, t.grant, t.home = granted, g, nil
	gone := t.gone
	t.mu.Unlock()
	t.release(fsm.ReasonNeverSent, !gone)
}
