package sim

import (
	"slices"

	"iop/fsm"
)

// limitOf is what a principal may do, nil if it has no limits.
func limitOf(img *fsm.Image, id fsm.PrincipalID) *fsm.PrincipalConfig {
	if i := slices.IndexFunc(img.Config.Principals, func(p fsm.PrincipalConfig) bool { return p.ID == id }); i >= 0 {
		return &img.Config.Principals[i]
	}
	return nil
}

// countOf counts the leases and the waiters of a principal.
func countOf(img *fsm.Image, id fsm.PrincipalID) (held, waiting int) {
	for i := range img.Requests {
		switch r := &img.Requests[i]; {
		case r.Principal != id:
		case r.Lease > 0:
			held++
		default:
			waiting++
		}
	}
	return held, waiting
}

// limited: I11. No grant takes a principal beyond its limit.
func (o *observer) limited(r *fsm.RequestRow) {
	held, _ := countOf(o.image, r.Principal)
	if l := limitOf(o.image, r.Principal); l != nil && l.MaxInFlight > 0 && held > l.MaxInFlight {
		o.w.failf("I11: %s holds %d leases after the grant of %s, %d is its limit", r.Principal, held, r.ID, l.MaxInFlight)
	}
}

// crowd: I11. No new request waits beyond its principal's limit.
func (o *observer) crowd(id fsm.PrincipalID) {
	_, waiting := countOf(o.image, id)
	if l := limitOf(o.image, id); l != nil && l.MaxQueued != fsm.QueuedUnlimited && waiting > l.MaxQueued {
		o.w.failf("I11: %d requests of %s wait, %d is its limit", waiting, id, l.MaxQueued)
	}
}

// inTurn tells whether the order of places holds between a waiter and a request that was granted. In a fair queue it does
// among those of one principal; between two principals it is the turn that counts.
func (o *observer) inTurn(v *fsm.RequestView, r *fsm.RequestRow, before *fsm.Image) bool {
	if !o.image.Config.Pool.Fair || v.Principal == r.Principal {
		return true
	}
	was := requestOf(before, r.ID)
	if o.image.NextLease != before.NextLease+1 || !before.Config.Pool.Fair || was == nil || was.Lease > 0 || v.State != fsm.StateWaiting {
		return false // several grants, each of which moved a turn; or it did not come out of the queue
	}
	mine, his := turnOf(before, r.Principal), turnOf(before, v.Principal)
	if his == 0 || requestOf(before, v.ID) == nil || his > mine {
		return false
	}
	for _, c := range v.Candidates {
		if c.Provider == r.Provider && (c.Reason == "" || c.Reason == fsm.WhyFull && v.Class == fsm.ClassNormal) {
			o.w.failf("I5: %s of %s was granted %s, and it is the turn of %s, whose %s waits", r.ID, r.Principal, r.Provider, v.Principal, v.ID)
		}
	}
	return false
}

func turnOf(img *fsm.Image, id fsm.PrincipalID) uint64 {
	for _, p := range img.Principals {
		if p.ID == id {
			return p.Turn
		}
	}
	return 0
}

// counted: I10. Each metered lease that has gone is in the ledger once, unless it is known not to have run.
func (o *observer) counted(b *fsm.Batch, before *fsm.Image) {
	release, _ := b.Commands[0].(*fsm.Release)
	admit, _ := b.Commands[0].(*fsm.Admit)
	want := before.Metered
	for i := range before.Requests {
		r := &before.Requests[i]
		if r.Lease == 0 || !r.Metered {
			continue
		}
		if is := requestOf(o.image, r.ID); is != nil && is.Lease == r.Lease {
			continue
		}
		if admit != nil && admit.Request == r.ID {
			continue // it takes back a grant that nobody had heard of
		}
		if release != nil && release.Lease == r.Lease {
			goesOn := release.Requeue && r.State == fsm.StateHeld && r.Session == b.Session
			if goesOn || release.Reason == fsm.ReasonNotRun || release.Reason == fsm.ReasonNeverSent {
				continue
			}
		}
		want++
	}
	sum := uint64(0)
	for i := range o.image.Usage {
		sum += o.image.Usage[i].Requests
	}
	if o.image.Metered != want || sum != want {
		o.w.failf("I10: %d runs ended, %d are counted, %d are in the ledger", want, o.image.Metered, sum)
	}
}
