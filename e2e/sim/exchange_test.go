package sim

import "iop/fsm"

// alike tells whether two requests are the same, but for their ids: with no key, nobody can tell whose clients they are.
func alike(a, b *fsm.RequestRow) bool {
	return a.Fingerprint == b.Fingerprint && a.Fingerprint != (fsm.Fingerprint{}) && a.Principal == b.Principal && a.Model == b.Model &&
		a.Class == b.Class
}

// moved tells whether a request has another place than before.
func moved(is, was *fsm.RequestRow) bool {
	return is.Enqueue != was.Enqueue || is.EnqueuedAt != was.EnqueuedAt || is.MaxWait != was.MaxWait
}

// exchanged tells whether a request has the place and the deadline that one that is alike had, where that may be.
func (o *observer) exchanged(is *fsm.RequestRow, before *fsm.Image) bool {
	switch c := o.only.(type) {
	case *fsm.EndSession:
		if c.Since == 0 {
			return false
		}
	case *fsm.Admit:
		if c.Place == 0 {
			return false
		}
	default:
		return false
	}
	for i := range before.Requests {
		was := &before.Requests[i]
		if was.ID != is.ID && was.Lease == 0 && alike(is, was) && !moved(is, was) {
			now := requestOf(o.image, was.ID)
			return now != nil && moved(now, was)
		}
	}
	return false
}

// newcomers: nobody who came again elsewhere, after the edge that is given up fell silent, stands behind the ghost that he
// may be, unless that has a newcomer's place.
func (o *observer) newcomers(c *fsm.EndSession, out *fsm.Outcome, before *fsm.Image) {
	if c.Since == 0 || out.Code != fsm.Done {
		return
	}
	for i := range before.Requests {
		ghost := &before.Requests[i]
		if ghost.Lease > 0 || ghost.Session != c.Session {
			continue
		}
		now := requestOf(o.image, ghost.ID)
		if now == nil || moved(now, ghost) {
			o.w.tally["places exchanged"]++
			continue
		}
		for j := range before.Requests {
			r := &before.Requests[j]
			if r.Lease > 0 || r.Session == 0 || r.Session == c.Session || r.EnqueuedAt < c.Since || r.Enqueue < ghost.Enqueue || !alike(r, ghost) {
				continue
			}
			if is := requestOf(o.image, r.ID); is != nil && !moved(is, r) {
				o.w.failf("%s came again as %s while its edge was silent, and has lost its place %d: it has %d", ghost.ID, r.ID, ghost.Enqueue, is.Enqueue)
			}
		}
	}
}
