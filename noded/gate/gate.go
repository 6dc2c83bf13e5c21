// Package gate holds a node's own count of the runs on one adapter: the last refusal in front of a backend.
//
// The edge's leases already keep a provider within its capacity; a gate refuses only when that is wrong, so every
// refusal is worth a log line. noded takes a place before it calls an adapter and gives it back when the run is over.
// A gate never waits and never queues: that is the edge's business.
package gate

import "sync/atomic"

// Gate counts the runs in flight against a capacity. It takes no lock. The zero value is unlimited.
type Gate struct {
	capacity atomic.Int64
	inFlight atomic.Int64
	refused  atomic.Uint64
}

// New returns a gate with room for capacity runs; 0 or less is unlimited.
func New(capacity int) *Gate {
	g := &Gate{}
	g.SetCapacity(capacity)
	return g
}

// SetCapacity changes the room; 0 or less is unlimited. Runs above a lowered capacity go on, and new ones are refused
// until enough of them have ended.
func (g *Gate) SetCapacity(capacity int) { g.capacity.Store(int64(max(capacity, 0))) }

// TryAcquire takes a place, or counts a refusal and returns false. Each true is owed exactly one Release.
func (g *Gate) TryAcquire() bool {
	for {
		n, limit := g.inFlight.Load(), g.capacity.Load()
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
