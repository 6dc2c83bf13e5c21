package admission

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// attached is a session that commands are proposed to for as long as it lasts.
type attached struct {
	Session
	over atomic.Bool // a command was told that it has ended
}

// errand is a command that a ticket may have under way, at most one of each at a time. A new session gets them in this
// order: what frees something first.
type errand uint8

const (
	toRelease errand = iota
	toCancel
	toAdmit
	toProbe // asks what became of a request that must be ours
	errands
)

// parked is a command that waits for the next session.
type parked struct {
	t *ticket
	e errand
}

// parkedMax bounds the new requests that wait for the next session; what ends something always finds room, because it is
// bounded by what was begun.
const parkedMax = 8192

// Attach gives the session that commands are proposed to from now on. First of all, before any new request, those that
// wait get their places back in it, the earliest first: so nobody is granted a slot that an earlier one could have used.
func (a *Admission) Attach(s Session) {
	n := &attached{Session: s}
	a.homeless()
	for {
		a.mu.Lock()
		todo := a.parked
		if len(todo) == 0 || n.over.Load() {
			if !n.over.Load() {
				a.now.Store(n)
			}
			a.mu.Unlock()
			return
		}
		a.parked = nil
		a.mu.Unlock()
		slices.SortStableFunc(todo, parked.compare)
		for _, p := range todo {
			p.t.proposeTo(n, p.e)
		}
	}
}

// compare orders what a new session is told: errands as they are listed, requests that have a place by their places, and
// the new ones behind them.
func (p parked) compare(o parked) int {
	if p.e != toAdmit || o.e != toAdmit {
		return cmp.Compare(p.e, o.e)
	}
	return cmp.Compare(p.t.enqueue-1, o.t.enqueue-1) // 0 = none yet wraps to the end
}

// homeless parks those that wait, to be admitted again: their session has ended, and the machine keeps their places for
// whoever asks for them by their names. Who is leaving has a Cancel under way instead, and what is told of his name from now
// on is for whoever came with it after him; who was turned away is left to his client.
func (a *Admission) homeless() {
	for _, t := range a.all() {
		t.mu.Lock()
		lost := t.phase == waiting && !t.gone
		leaving := t.gone && !t.turned
		if lost {
			t.phase = asking
		}
		t.mu.Unlock()
		if leaving {
			a.leave(t)
		}
		if !lost {
			continue
		}
		a.mu.Lock()
		if t.tabled {
			a.remove(t)
		}
		a.parked = append(a.parked, parked{t, toAdmit})
		a.mu.Unlock()
		t.undo() // its client may have left in this moment
	}
}

// reclaim has a request that had a place ask for that one, should the log know nothing of it any more, and for no longer
// than it may still wait.
func (t *ticket) reclaim() {
	if t.enqueue == 0 {
		return
	}
	t.admit.MaxWait = t.a.left(t)
	t.admit.Place = 0
	if t.a.has(LevelPlaces) {
		t.admit.Place = t.enqueue
	}
}

// unsend notes of a lease that is to be requeued that the session in which it was granted is over. Its link went with that,
// so it is no fault of its provider that it was not run.
func (t *ticket) unsend(s *attached) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.give.Requeue && t.home != s {
		t.give.Unsent = t.a.has(LevelPlaces)
	}
}

// left is what a waiter that is admitted again has left of its wait. The machine knows its deadline; this is for the case
// that it has run out there, and the request is taken for a new one.
func (a *Admission) left(t *ticket) fsm.Time {
	wait := t.maxWait
	if a.o.QueueTimeout != nil {
		if w := a.o.QueueTimeout(); w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	if wait == 0 {
		return 0
	}
	return max(wait-fsm.Time(time.Since(t.began)), fsm.Millisecond)
}

// Detach says that the session has ended, and that there will be another one. Commands wait for that.
func (a *Admission) Detach() {
	if s := a.now.Load(); s != nil {
		a.detach(s)
	}
}

func (a *Admission) detach(s *attached) {
	s.over.Store(true)
	a.now.CompareAndSwap(s, nil)
}

// Abandon says that there will be no further session: who waits for one gets ErrSessionEnded.
func (a *Admission) Abandon() {
	a.Detach()
	a.mu.Lock()
	a.abandoned = true
	left := a.parked
	a.parked = nil
	a.mu.Unlock()
	for _, p := range left {
		p.t.finish(ErrSessionEnded)
	}
	a.endWaiting(ErrSessionEnded)
}

// park keeps an errand for the next session, unless there is one again.
func (a *Admission) park(t *ticket, e errand) (*attached, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.now.Load(); s != nil {
		return s, nil
	}
	switch {
	case a.abandoned:
		return nil, ErrSessionEnded
	case e == toAdmit && a.turned:
		return nil, ErrStopping
	case e == toAdmit && t.enqueue == 0 && len(a.parked) >= parkedMax:
		return nil, ErrOverloaded
	}
	a.parked = append(a.parked, parked{t, e})
	return nil, nil
}

// unpark takes an errand back; false: it is not parked.
func (a *Admission) unpark(t *ticket, e errand) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.parked, parked{t, e})
	if i < 0 {
		return false
	}
	a.parked = slices.Delete(a.parked, i, i+1)
	return true
}

// propose must not be called with t.mu held: a session may answer at once.
func (t *ticket) propose(e errand) {
	s := t.a.now.Load()
	if s == nil {
		var err error
		if s, err = t.a.park(t, e); err != nil {
			t.finish(err)
			return
		}
	}
	if s != nil {
		t.proposeTo(s, e)
	} else {
		t.undo() // its client may have left in this moment
	}
}

func (t *ticket) proposeTo(s *attached, e errand) {
	t.at[e] = s
	switch e {
	case toRelease:
		t.unsend(s)
		s.Propose(&t.give, (*released)(t))
	case toCancel:
		s.Propose(&t.cancel, (*canceled)(t))
	case toAdmit:
		t.reclaim()
		s.Propose(&t.admit, (*admitted)(t))
	default:
		s.Propose(&t.cancel, (*probed)(t))
	}
}

// renew proposes an errand to the next session, after it was told that the one it went to has ended.
func (t *ticket) renew(e errand) {
	t.a.detach(t.at[e])
	t.propose(e)
}
