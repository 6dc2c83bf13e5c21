// Package gate holds a node's own count of the runs of one provider: the last refusal in front of a backend.
//
// The edge's leases already keep a provider within its capacity; a gate refuses only when that is wrong, so every
// refusal is worth a log line. noded takes a place before it calls an adapter and gives it back when the run is over.
// A gate never waits and never queues: that is the edge's business.
package gate

import (
	"sync/atomic"
	"time"
)

// Gate counts the runs in flight against a capacity. It takes no lock. The zero value is unlimited.
type Gate struct {
	capacity atomic.Int64
	lowered  atomic.Pointer[lowered] // nil: it never was
	inFlight atomic.Int64
	refused  atomic.Uint64
}

// New returns a gate with room for capacity runs; 0 or less is unlimited.
func New(capacity int) *Gate {
	g := &Gate{}
	g.capacity.Store(int64(max(capacity, 0)))
	return g
}

// lowered is the room that a lowered capacity still leaves for what was granted before.
type lowered struct {
	room  int64 // 0 = unlimited
	until time.Time
}

// SetCapacity changes the room; 0 or less is unlimited. One caller at a time. Runs above a lowered capacity go on, and new
// ones are refused until enough of them have ended. But what was granted under the former capacity may still be on its way
// here: it finds the former room until grace has passed. The edge grants nothing above the new one meanwhile.
func (g *Gate) SetCapacity(capacity int, grace time.Duration) {
	next := int64(max(capacity, 0))
	if next == g.capacity.Load() {
		return
	}
	room := g.limit()
	if wider(room, next) && grace > 0 {
		g.lowered.Store(&lowered{room: room, until: time.Now().Add(grace)})
	} else {
		g.lowered.Store(nil)
	}
	g.capacity.Store(next)
}

// limit is the room at the moment, 0 = unlimited.
func (g *Gate) limit() int64 {
	limit := g.capacity.Load()
	if l := g.lowered.Load(); l != nil && wider(l.room, limit) && time.Now().Before(l.until) {
		return l.room
	}
	return limit
}

// wider tells whether a is more room than b.
func wider(a, b int64) bool { return b != 0 && (a == 0 || a > b) }

// TryAcquire takes a place, or counts a refusal and returns false. Each true is owed exactly one Release.
func (g *Gate) TryAcquire() bool {
	for {
		n, limit := g.inFlight.Load(), g.limit()
		if limit > 0 && n >= limit {
			g.refused.Add(1)
			return false
		}
		if g.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a place back. It panics if none is taken, for a count below zero would let too many in later.
func (g *Gate) Release() {
	if g.inFlight.Add(-1) < 0 {
		panic("gate: Release without TryAcquire")
	}
}

// Capacity returns the room; 0 is unlimited.
func (g *Gate) Capacity() int { return int(g.capacity.Load()) }

// InFlight returns how many places are taken.
func (g *Gate) InFlight() int { return int(g.inFlight.Load()) }

// Refused returns how often TryAcquire has refused.
func (g *Gate) Refused() uint64 { return g.refused.Load() }
