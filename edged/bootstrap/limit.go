package bootstrap

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of the join exchange. A machine joins once; what asks more often is guessing.
const (
	joinBurst    = 10              // tries that an address has at once
	joinEvery    = 6 * time.Second // and then one more this often
	callersMax   = 4096            // addresses that are remembered; beyond, all others share one count
	callersForgo = joinBurst * joinEvery
)

// limiter counts tries per address. An IPv6 address counts with its /64, which one machine can have whole.
type limiter struct {
	mu      sync.Mutex // guards callers
	callers map[netip.Prefix]caller
}

// caller has used so many of its tries; one comes back each joinEvery.
type caller struct {
	used float64
	at   time.Time
}

// allow counts a try, and tells whether it may be made, or when the next may.
func (l *limiter) allow(from netip.Addr, now time.Time) (time.Duration, bool) {
	key := prefixOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers == nil {
		l.callers = map[netip.Prefix]caller{}
	}
	c, known := l.callers[key]
	if !known && len(l.callers) >= callersMax {
		l.forget(now)
		if len(l.callers) >= callersMax {
			key = netip.Prefix{}
			c = l.callers[key]
		}
	}
	c.used = max(0, c.used-float64(now.Sub(c.at))/float64(joinEvery))
	c.at = now
	if c.used+1 > joinBurst {
		l.callers[key] = c
		return time.Duration((c.used + 1 - joinBurst) * float64(joinEvery)), false
	}
	c.used++
	l.callers[key] = c
	return 0, true
}

// forget drops those who have all their tries again.
func (l *limiter) forget(now time.Time) {
	for key, c := range l.callers {
		if now.Sub(c.at) >= callersForgo {
			delete(l.callers, key)
		}
	}
}

func prefixOf(a netip.Addr) netip.Prefix {
	a = a.Unmap()
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
