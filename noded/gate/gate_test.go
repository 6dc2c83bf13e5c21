package gate_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/noded/gate"
)

func TestTheGateRefusesAtItsCapacity(t *testing.T) {
	g := gate.New(2)
	for range 2 {
		if !g.TryAcquire() {
			t.Fatal("a gate of 2 refused one of its first two runs")
		}
	}
	if g.TryAcquire() {
		t.Fatal("a gate of 2 let a third run in")
	}
	g.Release()
	if !g.TryAcquire() {
		t.Fatal("the place that was given back was not given on")
	}
	if g.InFlight() != 2 || g.Refused() != 1 || g.Capacity() != 2 {
		t.Fatalf("in flight %d, refused %d, capacity %d; want 2, 1, 2", g.InFlight(), g.Refused(), g.Capacity())
	}
}

func TestZeroCapacityIsUnlimited(t *testing.T) {
	for _, g := range []*gate.Gate{gate.New(0), gate.New(-1), {}} {
		for range 1000 {
			if !g.TryAcquire() {
				t.Fatal("an unlimited gate refused")
			}
		}
	}
}

func TestALoweredCapacityRefusesUntilEnoughHaveEnded(t *testing.T) {
	g := gate.New(3)
	for range 3 {
		g.TryAcquire()
	}
	g.SetCapacity(1, 0)
	g.Release()
	g.Release()
	if g.TryAcquire() {
		t.Fatal("a run was let in above the lowered capacity")
	}
	g.Release()
	if !g.TryAcquire() {
		t.Fatal("the gate refused although it was empty")
	}
}

// A run that was granted under the former capacity is on its way when the lower one comes.
func TestALoweredCapacityLeavesRoomForWhatWasGrantedBefore(t *testing.T) {
	g := gate.New(4)
	for range 3 {
		g.TryAcquire()
	}
	g.SetCapacity(2, time.Hour)
	g.SetCapacity(1, time.Hour)
	if !g.TryAcquire() {
		t.Fatal("the fourth run, granted before, was refused")
	}
	if g.TryAcquire() {
		t.Fatal("a fifth run was let in")
	}
	g.SetCapacity(1, time.Hour)
	if g.SetCapacity(3, 0); g.TryAcquire() {
		t.Fatal("a run was let in after the grace")
	}
	if g.Capacity() != 3 {
		t.Fatalf("capacity %d, want the new one", g.Capacity())
	}
	unlimited := gate.New(0)
	unlimited.SetCapacity(1, time.Hour)
	for range 2 {
		if !unlimited.TryAcquire() {
			t.Fatal("a gate that was unlimited refused what was granted before")
		}
	}
}

func TestAReleaseTooManyPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("the count went below zero in silence")
		}
	}()
	gate.New(1).Release()
}

func TestConcurrentRunsNeverExceedTheCapacity(t *testing.T) {
	const capacity, callers, rounds = 4, 32, 2000
	g := gate.New(capacity)
	var inside, peak, entered atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range rounds {
				if !g.TryAcquire() {
					continue
				}
				n := inside.Add(1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				inside.Add(-1)
				g.Release()
				entered.Add(1)
			}
		})
	}
	wg.Wait()
	if p := peak.Load(); p > capacity || p == 0 {
		t.Fatalf("peak %d with a capacity of %d", p, capacity)
	}
	if n := uint64(entered.Load()) + g.Refused(); n != callers*rounds {
		t.Fatalf("entered+refused = %d, want %d", n, callers*rounds)
	}
	if g.InFlight() != 0 {
		t.Fatalf("in flight %d after the last run", g.InFlight())
	}
}
