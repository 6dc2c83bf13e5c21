package sim

import (
	"slices"

	"iop/fsm"
)

// alone looks at entries of one command, where it is plain what came of what.
func (o *observer) alone(e *fsm.Entry, res fsm.Result, before *fsm.Image) {
	var b *fsm.Batch
	var out *fsm.Outcome
	for i := range e.Batches {
		if len(e.Batches[i].Commands) == 1 {
			b, out = &e.Batches[i], &res.Outcomes[i][0]
		}
	}
	o.places(before)
	o.order(before)
	o.counted(b, before)
	switch c := b.Commands[0].(type) {
	case *fsm.Admit:
		o.admitted(c, out, before)
	case *fsm.RegisterNode:
		o.registered(b.Session, c, out, before)
	case *fsm.NodeReady:
		o.current(c.Node, c.Generation, out, before, "NodeReady")
	case *fsm.LinkLost:
		o.current(c.Node, c.Generation, out, before, "LinkLost")
	case *fsm.SetHealth:
		o.current(c.Node, c.Generation, out, before, "SetHealth")
	case *fsm.LinkReport:
		if l := linkOf(before, c.Node, c.Generation); out.Code == fsm.Done && (l == nil || l.State != fsm.LinkFenced) {
			o.w.failf("a report on %s/%d took effect, which is not fenced", c.Node, c.Generation)
		}
	case *fsm.Expire:
		o.expired(e, c, out)
	case *fsm.EndSession:
		o.newcomers(c, out, before)
	}
}

// current: only a link in being has a say.
func (o *observer) current(n fsm.NodeID, g fsm.Generation, out *fsm.Outcome, before *fsm.Image, what string) {
	if l := linkOf(before, n, g); out.Code == fsm.Done && (l == nil || l.State == fsm.LinkFenced) {
		o.w.failf("%s of the old generation %d of %s took effect", what, g, n)
	}
}

// expired: an Expire of another term does nothing; one of this term leaves nobody behind.
func (o *observer) expired(e *fsm.Entry, c *fsm.Expire, out *fsm.Outcome) {
	if c.Term != e.Term {
		if out.Code != fsm.Stale {
			o.w.failf("an Expire of term %d took effect in term %d", c.Term, e.Term)
		}
		return
	}
	for _, v := range o.machine.Waiters() {
		if v.Deadline > 0 && v.Deadline <= e.Elapsed && out.Count < fsm.ExpireMax {
			o.w.failf("waiter %s is overdue since %d after an Expire at %d", v.ID, v.Deadline, e.Elapsed)
		}
	}
}

// admitted: a new request gets a new place, one that comes back its old one.
func (o *observer) admitted(c *fsm.Admit, out *fsm.Outcome, before *fsm.Image) {
	was := requestOf(before, c.Request)
	if was == nil && c.Fingerprint != (fsm.Fingerprint{}) {
		for i := range before.Requests {
			r := &before.Requests[i]
			if r.State == fsm.StateDetached && r.Fingerprint == c.Fingerprint && (was == nil || r.Enqueue < was.Enqueue) {
				was = r
			}
		}
	}
	is := requestOf(o.image, c.Request)
	unknown := requestOf(before, c.Request) == nil
	switch {
	case c.Place > 0 && is != nil && is.Enqueue == c.Place && unknown:
		o.w.tally["places claimed"]++
	case c.Place > 0 && was != nil && was.Lease > 0 && was.Session == 0 && was.Enqueue == c.Place && out.Refusal != fsm.RefusalInProgressElsewhere:
		o.w.tally["grants that nobody had heard of taken back"]++
	case was != nil && was.State == fsm.StateDetached && is != nil:
		o.w.tally["re-attached"]++
		if (is.Enqueue != was.Enqueue || is.EnqueuedAt != was.EnqueuedAt) && !o.exchanged(is, before) {
			o.w.failf("request %s came back to place %d instead of %d", c.Request, is.Enqueue, was.Enqueue)
		}
	case was != nil && was.State == fsm.StateDetached:
		o.ended++ // it came back, and there is no hope for it
	case was != nil:
		if out.Refusal != fsm.RefusalInProgressElsewhere {
			o.w.failf("request %s is in being, and is admitted again: %s", c.Request, out.Code)
		}
	case out.Code == fsm.Queued && o.machine.Pending() > max(1, o.image.Config.Pool.MaxQueue):
		o.w.failf("I8: %d wait, at most %d may", o.machine.Pending(), o.image.Config.Pool.MaxQueue)
	case out.Code == fsm.Queued && out.Enqueue >= before.NextEnqueue: // who claims its old place is exempt
		o.crowd(c.Principal)
	}
}

// registered: one link per edge, one process per node, one generation per registration.
func (o *observer) registered(s fsm.SessionID, c *fsm.RegisterNode, out *fsm.Outcome, before *fsm.Image) {
	n := nodeOf(before, c.Node)
	if out.Code != fsm.Registered || n == nil {
		return
	}
	if out.Generation != n.Generation+1 {
		o.w.failf("%s has generation %d after %d", c.Node, out.Generation, n.Generation)
	}
	for _, l := range n.Links {
		switch {
		case l.State == fsm.LinkFenced:
		case l.Session == s && l.Generation != c.Supersede:
			o.w.failf("%s was registered beside its living link %d", c.Node, l.Generation)
		case l.Session != s && n.Instance != c.Instance:
			o.w.failf("%s was registered for another process beside link %d", c.Node, l.Generation)
		}
	}
}

// places: a request keeps its place for its life, or exchanges it with one that is alike.
func (o *observer) places(before *fsm.Image) {
	for i := range o.image.Requests {
		r := &o.image.Requests[i]
		if was := requestOf(before, r.ID); was != nil && moved(r, was) && !o.exchanged(r, before) {
			o.w.failf("request %s moved from place %d to %d", r.ID, was.Enqueue, r.Enqueue)
		}
	}
}

// order: I2 and I5 for the grants of a command.
func (o *observer) order(before *fsm.Image) {
	waiters := []fsm.RequestView(nil)
	for i := range o.image.Requests {
		r := &o.image.Requests[i]
		if r.Lease < before.NextLease || r.Lease == 0 {
			continue
		}
		if was := requestOf(before, r.ID); was != nil && was.State == fsm.StateDetached && r.Session == was.Session {
			o.w.failf("detached waiter %s was granted", r.ID)
		}
		if l := linkOf(o.image, r.Node, r.Generation); l == nil || l.State != fsm.LinkReady || l.Session != r.Session {
			o.w.failf("I7: lease %d was granted over %s/%d, which is not the session's ready link", r.Lease, r.Node, r.Generation)
		}
		o.within(r)
		o.limited(r)
		if waiters == nil {
			waiters = o.machine.Waiters()
		}
		for j := range waiters {
			if o.inTurn(&waiters[j], r, before) {
				o.overtaken(&waiters[j], r)
			}
		}
	}
}

// within: I2.
func (o *observer) within(r *fsm.RequestRow) {
	busy, long := 0, 0
	for i := range o.image.Requests {
		if x := &o.image.Requests[i]; x.Lease > 0 && x.Provider == r.Provider {
			busy++
			if x.Class == fsm.ClassLong {
				long++
			}
		}
	}
	i := slices.IndexFunc(o.image.Providers, func(p fsm.ProviderRow) bool { return p.Config.ID == r.Provider })
	c := &o.image.Providers[i].Config
	if busy > c.Capacity || r.Class == fsm.ClassLong && c.LongCapacity >= 0 && long > c.LongCapacity {
		o.w.failf("I2: %s has %d leases (%d long) after the grant of %s, its capacity is %d (%d)", c.ID, busy, long, r.ID, c.Capacity, c.LongCapacity)
	}
	if !c.Enabled {
		o.w.failf("%s was granted on %s, which is disabled", r.ID, c.ID)
	}
}

// overtaken: I5. v still waits, r has just been granted.
func (o *observer) overtaken(v *fsm.RequestView, r *fsm.RequestRow) {
	if v.Enqueue > r.Enqueue || v.State != fsm.StateWaiting {
		return
	}
	for _, c := range v.Candidates {
		if c.Provider != r.Provider {
			continue
		}
		bothLong := r.Class == fsm.ClassLong && v.Class == fsm.ClassLong
		if c.Reason == "" || c.Reason == fsm.WhyFull && (v.Class == fsm.ClassNormal || bothLong) || c.Reason == fsm.WhyLongFull && bothLong {
			o.w.failf("I5: %s (place %d) was granted %s before %s (place %d)", r.ID, r.Enqueue, r.Provider, v.ID, v.Enqueue)
		}
	}
}
