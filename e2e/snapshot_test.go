package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// TestSnapshotEqualsMachine: at every moment of a run over several models and providers, the snapshot's numbers per
// provider and in total are those of the leases and waiters themselves.
func TestSnapshotEqualsMachine(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{
			{id: "p1", url: b.URL(), capacity: 2, long: 1, window: 131072},
			{id: "p2", node: "n2", url: b.URL(), capacity: 3, long: 1, window: 131072, priority: 5},
			{id: "p3", node: "n2", url: b.URL(), capacity: 1},
		},
		models: map[string][]string{"a": {"p1"}, "b": {"p1", "p2"}, "c": {"p2", "p3"}},
	})
	var flights []*flight
	for i := range rounds(60, 400) {
		flights = snapshotStep(w, b, r, flights, i)
		m := w.moment()
		checkMoment(t, m)
		if t.Failed() {
			t.Fatalf("after step %d: %+v", i, m.status)
		}
	}
	b.LetAll()
	for _, f := range flights {
		<-f.done
	}
	w.awaitIdle()
	checkMoment(t, w.moment())
}

// snapshotStep starts a request, lets one end, or makes a client leave.
func snapshotStep(w *world, b *backend.Backend, r *rand.Rand, flights []*flight, i int) []*flight {
	switch n := r.IntN(10); {
	case n < 6 && len(flights) < 20:
		a := ask{model: string(rune('a' + r.IntN(3))), tag: fmt.Sprint("r", i), stream: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			a.prompt = longPrompt
		}
		return append(flights, w.start(a))
	case n < 8:
		if b.Stats().Held > 0 {
			b.Let(1)
		}
	case len(flights) > 0:
		k := r.IntN(len(flights))
		flights[k].leave()
		<-flights[k].done
		return append(flights[:k], flights[k+1:]...)
	}
	return flights
}

// moment is everything of one log index.
type moment struct {
	status  adminapi.Status
	leases  []adminapi.Lease
	waiters []adminapi.Waiter
}

// moment reads until nothing has changed in between.
func (w *world) moment() moment {
	w.t.Helper()
	var m moment
	await(w.t, "a moment in which the index stands still", func() bool {
		m.status = w.status()
		m.leases, m.waiters = w.leases(), w.waiters()
		return w.status().AppliedIndex == m.status.AppliedIndex
	})
	return m
}

func checkMoment(t *testing.T, m moment) {
	t.Helper()
	held, heldLong := map[string]int{}, map[string]int{}
	for _, l := range m.leases {
		held[l.Provider]++
		if l.Class == "long" {
			heldLong[l.Provider]++
		}
	}
	press, pressLong, long := map[string]int{}, map[string]int{}, 0
	for _, x := range m.waiters {
		if x.Class == "long" {
			long++
		}
		for _, c := range x.Candidates {
			if c.Dispatchable {
				t.Errorf("the waiter %s could have %s and waits", x.Request, c.Provider)
			}
			press[c.Provider]++
			if x.Class == "long" {
				pressLong[c.Provider]++
			}
		}
	}
	q := m.status.Queue
	if q.Pending != len(m.waiters) || q.LongPending != long {
		t.Errorf("queue %+v, but %d waiters, %d long", q, len(m.waiters), long)
	}
	for _, p := range m.status.Providers {
		if p.InFlight != held[p.ID] || p.LongInFlight != heldLong[p.ID] || p.Queued != press[p.ID] || p.LongQueued != pressLong[p.ID] {
			t.Errorf("%+v, but leases %d, %d long, waiters %d, %d long", p, held[p.ID], heldLong[p.ID], press[p.ID], pressLong[p.ID])
		}
		if p.Capacity == nil || p.InFlight > *p.Capacity {
			t.Errorf("%d in flight at %s beyond its capacity", p.InFlight, p.ID)
		}
		if p.LongCapacity != nil && p.LongInFlight > *p.LongCapacity {
			t.Errorf("%d long in flight at %s beyond its long capacity", p.LongInFlight, p.ID)
		}
		if (p.Status == "full") != (p.Capacity != nil && p.InFlight == *p.Capacity) {
			t.Errorf("%s is %s with %d in flight", p.ID, p.Status, p.InFlight)
		}
	}
}

// TestOfflineProviderStaysListed with its identity and zeros, and comes back as the same with the next generation.
func TestOfflineProviderStaysListed(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 2)
	l.providers[0].long, l.providers[0].window = 1, 131072
	l.grace = time.Millisecond
	w := newWorld(t, l)
	before := w.provider("p1")
	if !before.Connected || before.Status != "available" || before.Health != "healthy" || *before.Capacity != 2 || *before.LongCapacity != 1 {
		t.Errorf("connected: %+v", before)
	}
	lost := w.start(longAsk("lost"))
	w.awaitLeases(1)
	w.nodes["n1"].kill()
	await(t, "the node is offline", func() bool { return !w.node("n1").Connected })
	a := lost.wait(t)
	a.wantError(t, 502, "provider_error")
	p := w.provider("p1")
	if p.Connected || p.Status != "unavailable" || p.Health != "offline" || p.InFlight != 0 || p.LongInFlight != 0 ||
		p.Capacity == nil || *p.Capacity != 0 || p.LongCapacity == nil || *p.LongCapacity != 0 {
		t.Errorf("offline: %+v", p)
	}
	if p.Node != before.Node || p.Type != before.Type || p.ID != before.ID || p.Priority != before.Priority {
		t.Errorf("offline it is %+v, before %+v", p, before)
	}
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	w.startNode("n1")
	w.awaitLink("n1")
	p = w.provider("p1")
	if p.Generation != before.Generation+1 || !p.Connected || *p.Capacity != 2 || *p.LongCapacity != 1 {
		t.Errorf("back: %+v, before: %+v", p, before)
	}
	b.LetAll()
	w.want(200, ask{})
	w.awaitIdle()
}
