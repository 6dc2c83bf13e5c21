package spans

import (
	"sync"
	"time"
)

// allowance is how many requests a second are recorded because their client asked for it: what a second allows may come at
// once, and nothing is saved up beyond that.
type allowance struct {
	perSecond float64

	mu   sync.Mutex
	left float64
	at   time.Time // when left was true
}

func newAllowance(perSecond int) *allowance {
	n := float64(max(perSecond, 0))
	return &allowance{perSecond: n, left: n}
}

// take tells whether there is one left, and takes it. Times that are not in order bring nothing back.
func (a *allowance) take(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if passed := now.Sub(a.at); passed > 0 {
		a.left = min(a.perSecond, a.left+a.perSecond*passed.Seconds())
		a.at = now
	}
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}
