package admission

import "time"

// bellsPer is how many bells ring in Options.Patience.
const bellsPer = 8

// bells tell requests that their patience is over. Requests that began about the same time share one, because a timer for
// each would be most of what admission costs.
type bells struct {
	last  chan struct{} // of the requests that begin now
	until time.Time     // when those that begin get another
}

// bell returns what is closed when the patience of a request that begins now is over, or up to an eighth later. The caller
// holds mu.
func (a *Admission) bell(now time.Time) chan struct{} {
	b := &a.bells
	if b.last == nil || !now.Before(b.until) {
		each := a.o.Patience / bellsPer
		rings := make(chan struct{})
		b.last, b.until = rings, now.Add(each)
		time.AfterFunc(a.o.Patience+each, func() { close(rings) })
	}
	return b.last
}
