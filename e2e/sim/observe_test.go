package sim

import (
	"slices"

	"iop/fsm"
)

// observer holds the machine that sees each entry first, and states the rules of docs/SEMANTICS.md from outside: by what the
// machine says and shows, not by how it is made.
type observer struct {
	w       *world
	machine *fsm.Machine
	image   *fsm.Image
	leases  []fsm.LeaseID // held now
	only    fsm.Command   // of the last entry, if it had one
	ended   uint64        // requests that came to their end
	configs []*fsm.Config // in force while the last entry was applied

	granted  map[fsm.LeaseID]bool
	returned map[fsm.LeaseID]bool
	most     map[fsm.LeaseID]int // largest capacity since the grant
	excused  map[fsm.LeaseID]bool
	batches  map[batchKey]seen
	acks     map[fsm.SessionID]uint64
}

type batchKey struct {
	session fsm.SessionID
	seq     uint64
}

type seen struct {
	sum      uint64
	outcomes []fsm.Outcome
}

func newObserver(w *world) *observer {
	m := fsm.New()
	return &observer{
		w: w, machine: m, image: m.Image(), granted: map[fsm.LeaseID]bool{}, returned: map[fsm.LeaseID]bool{},
		most: map[fsm.LeaseID]int{}, excused: map[fsm.LeaseID]bool{}, batches: map[batchKey]seen{}, acks: map[fsm.SessionID]uint64{},
	}
}

// apply takes a committed entry and looks at what became of it.
func (o *observer) apply(r *record) [32]byte {
	e := o.w.log.decode(r)
	before := o.image
	res := o.machine.Apply(e)
	o.w.story.entry(e, &res)
	if err := o.machine.Check(); err != nil {
		o.w.failf("after entry %d: %v", r.index, err)
	}
	o.image = o.machine.Image()
	o.leases = o.leases[:0]
	for _, v := range o.machine.Leases() {
		o.leases = append(o.leases, v.Lease)
	}
	o.inForce(e, before)
	commands := 0
	for i := range e.Batches {
		commands += len(e.Batches[i].Commands)
	}
	alone := commands == 1
	o.only = only(e)
	o.raised(before, &res, commands)
	for i := range e.Batches {
		done := o.batch(&e.Batches[i], res.Outcomes[i], before, alone)
		alone = alone && (done || len(e.Batches[i].Commands) == 0)
	}
	for i := range res.Effects {
		o.effect(&res.Effects[i], before, alone)
	}
	if alone {
		o.alone(e, res, before)
	}
	for lease := range o.most {
		if i := slices.IndexFunc(o.image.Requests, func(r fsm.RequestRow) bool { return r.Lease == lease }); i >= 0 {
			o.most[lease] = max(o.most[lease], o.capacity(o.image.Requests[i].Provider))
		}
	}
	if gone := uint64(o.image.NextEnqueue) - 1 - uint64(len(o.image.Requests)); gone > o.ended && !alone {
		o.ended += min(gone-o.ended, refusals(res)) // who came back in an entry of many commands, and had no hope
	}
	if gone := uint64(o.image.NextEnqueue) - 1 - uint64(len(o.image.Requests)); gone < o.ended {
		o.ended -= min(o.ended-gone, claims(e, res))
	}
	o.w.places.see(o.image)
	if uint64(o.image.NextEnqueue)-1 != o.ended+uint64(len(o.image.Requests)) {
		o.w.failf("after entry %d: %d requests were taken, %d ended, %d are there", r.index, o.image.NextEnqueue-1, o.ended, len(o.image.Requests))
	}
	return o.image.Digest()
}

// only is the one command of an entry, or the last of several.
func only(e *fsm.Entry) (c fsm.Command) {
	for i := range e.Batches {
		for _, x := range e.Batches[i].Commands {
			c = x
		}
	}
	return c
}

// refusals counts them in a result.
func refusals(res fsm.Result) (n uint64) {
	for _, list := range res.Outcomes {
		for i := range list {
			if list[i].Code == fsm.Refused {
				n++
			}
		}
	}
	return n
}

// batch: each is carried out once; done = now.
func (o *observer) batch(b *fsm.Batch, outcomes []fsm.Outcome, before *fsm.Image, alone bool) (done bool) {
	if b.Session != 0 {
		switch outcomes[0].Code {
		case fsm.SequenceGap, fsm.SequenceForgotten, fsm.SequenceCollision, fsm.SessionEnded:
			o.w.tally["batch "+outcomes[0].Code.String()]++
			if was := o.batches[batchKey{b.Session, b.Seq}]; outcomes[0].Code == fsm.SequenceForgotten && was.sum == b.Sum && b.Seq >= o.acks[b.Session] {
				o.w.failf("the outcomes of batch %d/%d are forgotten, the session knows only those below %d", b.Session, b.Seq, o.acks[b.Session])
			}
			if alone && !same(before, o.image) {
				o.w.failf("batch %d/%d was refused as %s and changed something", b.Session, b.Seq, outcomes[0].Code)
			}
			return false
		}
		key := batchKey{b.Session, b.Seq}
		if was, known := o.batches[key]; known {
			o.w.tally["batch answered again"]++
			if was.sum != b.Sum || !slices.EqualFunc(was.outcomes, outcomes, sameOutcome) {
				o.w.failf("batch %d/%d has other outcomes the second time", b.Session, b.Seq)
			}
			if alone && !same(before, o.image) {
				o.w.failf("batch %d/%d changed something the second time", b.Session, b.Seq)
			}
			return false
		}
		o.batches[key] = seen{b.Sum, outcomes}
		o.acks[b.Session] = max(o.acks[b.Session], b.AckBelow)
	}
	for i, c := range b.Commands {
		o.outcome(c, &outcomes[i])
	}
	return true
}

// outcome: leases are given and returned once, requests end once.
func (o *observer) outcome(c fsm.Command, out *fsm.Outcome) {
	if out.Code == fsm.Granted {
		o.grant(&out.Grant)
	}
	switch c := c.(type) {
	case *fsm.Release:
		switch out.Code {
		case fsm.Returned, fsm.Refused:
			o.giveBack(c.Lease)
			o.ended++
		case fsm.Granted, fsm.Queued:
			o.giveBack(c.Lease)
			if !c.Requeue {
				o.w.failf("release of lease %d without requeue: %s", c.Lease, out.Code)
			}
			o.w.tally["requeued"]++
		}
	case *fsm.Cancel:
		if out.Code == fsm.Removed {
			o.ended++
		}
	case *fsm.Admit:
		o.w.tally["admit "+out.Code.String()]++
	}
}

func (o *observer) grant(g *fsm.Grant) {
	if o.granted[g.Lease] {
		o.w.failf("lease %d was granted before", g.Lease)
	}
	o.granted[g.Lease] = true
	o.most[g.Lease] = o.capacity(g.Provider)
}

func (o *observer) giveBack(lease fsm.LeaseID) {
	if !o.granted[lease] || o.returned[lease] {
		o.w.failf("I6: lease %d is returned, granted %t, returned before %t", lease, o.granted[lease], o.returned[lease])
	}
	o.returned[lease] = true
}

// effect: what happens without the request's asking.
func (o *observer) effect(x *fsm.Effect, before *fsm.Image, alone bool) {
	switch x.Kind {
	case fsm.EffectGranted:
		o.grant(&x.Grant)
		if s, ok := o.machine.CurrentSession(x.Edge); x.Session == 0 || alone && (!ok || s != x.Session) {
			o.w.failf("waiter %s was granted to session %d of %s, which is not there", x.Request, x.Session, x.Edge)
		}
	case fsm.EffectReturned:
		o.giveBack(x.Grant.Lease)
		o.ended++
		o.w.tally["returned "+x.Reason.String()]++
		if x.Reason == fsm.ReasonFenceTimeout {
			o.w.excuse(x.Grant.Lease, "fence timeout")
		}
		if alone && x.Reason != fsm.ReasonNeverSent {
			o.fenced(x, before)
			if end, ok := o.only.(*fsm.EndSession); ok && end.Alive && x.Reason == fsm.ReasonSessionEnded {
				o.w.failf("lease %d was returned at once with a session whose edge may live", x.Grant.Lease)
			}
		}
	case fsm.EffectEnded:
		o.ended++
		o.w.tally["ended "+x.Refusal.String()]++
		if alone {
			o.due(x, before)
		}
	}
}

// fenced: a lease comes back at once only if its node has no other ready link, and after the timeout only when that is over.
func (o *observer) fenced(x *fsm.Effect, before *fsm.Image) {
	switch x.Reason {
	case fsm.ReasonReported:
	case fsm.ReasonFenceTimeout:
		if l := linkOf(before, x.Node, x.Generation); l == nil || l.State != fsm.LinkFenced || l.FenceUntil > o.machine.Now() {
			o.w.failf("lease %d was returned by fence timeout before its time", x.Grant.Lease)
		}
	default:
		if l := linkOf(before, x.Node, x.Generation); l != nil && l.Apart {
			o.w.failf("lease %d of %s/%d, whose edge may carry it on, was returned at once (%s)", x.Grant.Lease, x.Node, x.Generation, x.Reason)
		}
		for _, n := range o.image.Nodes {
			if n.ID != x.Node {
				continue
			}
			for _, l := range n.Links {
				if l.State == fsm.LinkReady {
					o.w.failf("lease %d of %s/%d was returned at once (%s), but link %d of the node is ready", x.Grant.Lease, x.Node, x.Generation, x.Reason, l.Generation)
				}
			}
		}
	}
}

// due: nobody is ended before the time by cluster time.
func (o *observer) due(x *fsm.Effect, before *fsm.Image) {
	r := requestOf(before, x.Request)
	if r == nil || x.Refusal != fsm.RefusalQueueTimeout && x.Refusal != fsm.RefusalAbandoned {
		return
	}
	wait := o.image.Config.Pool.QueueTimeout
	if r.MaxWait > 0 && (wait == 0 || r.MaxWait < wait) {
		wait = r.MaxWait
	}
	now := o.machine.Now()
	late := wait > 0 && now >= r.EnqueuedAt+wait
	if x.Refusal == fsm.RefusalAbandoned {
		late = late || now >= r.DetachedUntil
	}
	if !late {
		o.w.failf("waiter %s ended as %s at %d, which is before its time", x.Request, x.Refusal, now)
	}
}

// capacity is the largest that a provider had while the entry was applied.
func (o *observer) capacity(id fsm.ProviderID) (most int) {
	for _, c := range o.configs {
		for i := range c.Providers {
			if c.Providers[i].ID == id {
				most = max(most, c.Providers[i].Capacity)
			}
		}
	}
	return most
}

// inForce are the configurations that were in force while the entry was applied: before, in and after it.
func (o *observer) inForce(e *fsm.Entry, before *fsm.Image) {
	o.configs = append(o.configs[:0], &before.Config, &o.image.Config)
	for i := range e.Batches {
		for _, c := range e.Batches[i].Commands {
			if a, ok := c.(*fsm.ApplyConfig); ok {
				o.configs = append(o.configs, &a.Config)
			}
		}
	}
}

// same tells whether two states differ in nothing but the entry that led to them.
func same(a, b *fsm.Image) bool {
	x, y := *a, *b
	x.Index, x.Term, x.Now, x.Wall = 0, 0, 0, 0
	y.Index, y.Term, y.Now, y.Wall = 0, 0, 0, 0
	return x.Digest() == y.Digest()
}

func sameOutcome(a, b fsm.Outcome) bool {
	counted := slices.Equal(a.Counted, b.Counted)
	a.Counted, b.Counted = nil, nil
	return counted && a.Code == b.Code && a.Refusal == b.Refusal && a.Grant == b.Grant && a.Position == b.Position &&
		a.Enqueue == b.Enqueue && a.Session == b.Session && a.Generation == b.Generation && a.Revision == b.Revision && a.Count == b.Count
}

func linkOf(img *fsm.Image, node fsm.NodeID, g fsm.Generation) *fsm.LinkRow {
	for i := range img.Nodes {
		for j := range img.Nodes[i].Links {
			if l := &img.Nodes[i].Links[j]; img.Nodes[i].ID == node && l.Generation == g {
				return l
			}
		}
	}
	return nil
}

func nodeOf(img *fsm.Image, id fsm.NodeID) *fsm.NodeRow {
	for i := range img.Nodes {
		if img.Nodes[i].ID == id {
			return &img.Nodes[i]
		}
	}
	return nil
}

func requestOf(img *fsm.Image, id fsm.RequestID) *fsm.RequestRow {
	i := slices.IndexFunc(img.Requests, func(r fsm.RequestRow) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &img.Requests[i]
}
