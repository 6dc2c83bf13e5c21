package admission

import (
	"context"
	"sync"
	"time"

	"iop/fsm"
)

// phase is where a ticket stands.
//
//	asking ──granted──▶ granted ──release──▶ releasing ──▶ over
//	  │ ▲                  ▲  │
//	queued └───requeue─────┼──┘
//	  ▼                    │
//	waiting ────effect─────┘        refused, ended, canceled: ▶ over
type phase uint8

const (
	asking    phase = iota // an Admit or a Release with requeue is on its way, or waits for a session
	waiting                // in the queue
	granted                // holds a lease that Dispatch has or is about to have
	releasing              // the lease is on its way back
	over
)

// ticket is one request on its way. It is its own receiver, in one shape per command. The commands live inside it; it
// never proposes one again before its outcome has arrived.
type ticket struct {
	a     *Admission
	began time.Time
	wake  chan struct{} // capacity 1: something changed for Run
	late  chan struct{} // closed when Options.Patience is over

	admit   fsm.Admit
	cancel  fsm.Cancel
	give    fsm.Release
	at      [errands]*attached // where each was proposed last
	maxWait fsm.Time           // of its first Admit
	enqueue fsm.Enqueue        // its place; 0 = it never had one. Written by the dispatcher
	usage   fsm.Usage          // of the run, for its last release
	asked   bool               // the outcome of an Admit went with its session; of the dispatcher

	next   *ticket // a later one with the same id in the table; guarded by Admission.mu
	tabled bool    // it is in the table; guarded by Admission.mu

	mu         sync.Mutex // guards the rest
	phase      phase
	gone       bool // Run has left or must leave: what comes now is undone
	canceling  bool // a Cancel is on its way
	turned     bool // sent away without a Cancel, to keep its place; no longer counted as open
	readmitted int
	position   int
	grant      fsm.Grant
	home       *attached // the session when it was granted
	err        error     // why it is over, or why Run must leave
	backoff    time.Duration
}

func newTicket(a *Admission, r *Request) *ticket {
	t := &ticket{a: a, began: time.Now(), wake: make(chan struct{}, 1)}
	t.admit = fsm.Admit{
		Request: r.ID, Fingerprint: r.Fingerprint, Model: r.Model, Class: r.Class,
		InputTokens: r.InputTokens, Needs: r.Needs, MaxWait: r.MaxWait,
		Provider: r.Provider, Served: r.Served,
	}
	if a.has(LevelPrincipals) {
		t.admit.Principal, t.admit.Token, t.admit.Metered = r.Principal, r.Token, r.Metered
	}
	t.cancel.Request = r.ID
	t.maxWait = r.MaxWait
	return t
}

func (t *ticket) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// await returns when the request holds a lease, or with the error that ended it.
func (t *ticket) await(ctx context.Context, c Caller, every time.Duration) (fsm.Grant, error) {
	var tick *time.Timer
	var ticks <-chan time.Time
	late := t.late
	defer func() {
		if tick != nil {
			tick.Stop()
		}
	}()
	for told := false; ; {
		select {
		case <-t.wake:
		case <-ticks:
			c.Queued(t.place())
			tick.Reset(every)
			continue
		case <-late:
			late = nil
			if t.undecided() {
				return fsm.Grant{}, t.leave(ErrNoLeader)
			}
			continue
		case <-ctx.Done():
			return fsm.Grant{}, t.leave(context.Cause(ctx))
		}
		t.mu.Lock()
		ph, g, err, position, gone := t.phase, t.grant, t.err, t.position, t.gone
		t.mu.Unlock()
		switch {
		case ph == over || gone:
			return fsm.Grant{}, err
		case ph == granted && ctx.Err() != nil:
			return fsm.Grant{}, t.leave(context.Cause(ctx))
		case ph == granted:
			return g, nil
		case ph == waiting && !told:
			told = true
			c.Queued(position)
			if every > 0 {
				tick = time.NewTimer(every)
				ticks = tick.C
			}
		}
	}
}

// undecided tells whether nothing is known of the request: neither a place nor a slot. One that has a place keeps it as
// long as its client waits.
func (t *ticket) undecided() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == asking && t.enqueue == 0
}

func (t *ticket) place() int {
	if t.a.o.Position != nil {
		return t.a.o.Position(t.admit.Request)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position
}

// leave is the end of Run before a dispatch: a waiter is canceled, a grant given back, and what is still on its way
// will be undone when it arrives.
func (t *ticket) leave(err error) error {
	t.mu.Lock()
	if t.phase == over || t.gone {
		err = t.err
	}
	t.gone = true
	t.mu.Unlock()
	t.undo()
	return err
}

// turn sends a waiter away without a Cancel: the end of the session will detach it, and its client finds its place
// again at this edge's next life or at another edge. A grant that comes before that is given back.
func (t *ticket) turn(err error) {
	t.mu.Lock()
	if t.phase != waiting || t.gone {
		t.mu.Unlock()
		return
	}
	t.gone, t.turned, t.err = true, true, err
	t.mu.Unlock()
	t.rouse()
	t.a.ended(t.admit.Request)
}

// undo takes the next step of a request that nobody waits for any more.
func (t *ticket) undo() {
	t.mu.Lock()
	switch {
	case !t.gone:
		t.mu.Unlock()
	case t.phase == granted:
		t.mu.Unlock()
		t.release(fsm.ReasonNeverSent, false)
	case t.phase == waiting && !t.canceling && !t.turned:
		t.canceling = true
		t.mu.Unlock()
		t.propose(toCancel)
	case t.phase == asking:
		t.mu.Unlock()
		t.recall()
	default:
		t.mu.Unlock()
	}
}

// recall takes back an Admit that no session has got yet. A place that the request had before is given up.
func (t *ticket) recall() {
	if !t.a.unpark(t, toAdmit) {
		return
	}
	if t.enqueue == 0 {
		t.finish(nil)
		return
	}
	t.mu.Lock()
	t.phase, t.canceling = waiting, true
	t.mu.Unlock()
	t.propose(toCancel)
}

// release gives the lease back, once; with requeue the request goes on at its old place.
func (t *ticket) release(why fsm.Reason, requeue bool) {
	t.mu.Lock()
	if t.phase != granted {
		t.mu.Unlock()
		return
	}
	t.phase = releasing
	if requeue {
		t.phase = asking
	}
	t.give = fsm.Release{Lease: t.grant.Lease, Reason: why, Requeue: requeue, Usage: t.usage}
	t.give.Unsent = requeue && why == fsm.ReasonNeverSent && t.a.has(LevelPlaces)
	t.mu.Unlock()
	t.propose(toRelease)
}
