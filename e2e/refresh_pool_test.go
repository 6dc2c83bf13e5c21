package e2e

import (
	"fmt"
	"testing"
	"time"

	"iop/e2e/backend"
)

// waiterAge is how long the n-th waiter has waited; -1: there is none.
func (w *world) waiterAge(n int) time.Duration {
	w.t.Helper()
	q := w.waiters()
	if len(q) < n {
		return -1
	}
	return time.Duration(q[n-1].AgeMS) * time.Millisecond
}

// TestRefreshShorterQueueTimeoutEndsTheOverdue at once, and no others: deadlines count from the enqueue, not from the
// refresh.
func TestRefreshShorterQueueTimeoutEndsTheOverdue(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	running := w.start(ask{tag: "running"})
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	old := []*flight{w.queue(ask{tag: "old"}, 1), w.queue(ask{tag: "old stream", stream: true}, 2)}
	const timeout = 600 * time.Millisecond
	await(t, "both are older than the new timeout", func() bool { return w.waiterAge(2) > timeout })
	began := time.Now()
	young := w.queue(ask{tag: "young"}, 3)
	r := w.apply(func(l *layout) { l.timeout = timeout })
	r.wantPath("provider_pool.queue_timeout_ms", "live", 0, timeout.Milliseconds())
	for _, f := range old {
		a := f.wait(t)
		a.wantError(t, 503, "queue_timeout")
		a.wantRetry(t)
	}
	a := young.wait(t)
	a.wantError(t, 503, "queue_timeout")
	if waited := time.Since(began); waited < timeout {
		t.Errorf("the young one ended after %v, before its own deadline of %v", waited, timeout)
	}
	if s := b.Stats(); s.Held != 1 || s.Total != 1 {
		t.Errorf("backend %+v", s)
	}
	b.LetAll()
	a = running.wait(t)
	a.want(t, 200)
	side.end()
}

// TestRefreshLongerQueueTimeoutKeepsWaiters beyond their old deadline.
func TestRefreshLongerQueueTimeoutKeepsWaiters(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.timeout = 2 * time.Second
	w, side := newBusyWorld(t, l, "n1")
	flights := []*flight{w.start(ask{tag: "running"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "first"}, 1), w.queue(ask{tag: "second", stream: true}, 2))
	w.apply(func(l *layout) { l.timeout = time.Hour })
	for _, x := range w.waiters() {
		if x.DeadlineInMS == nil || *x.DeadlineInMS < 3_500_000 {
			t.Errorf("the deadline of %+v is not the new one", x)
		}
	}
	await(t, "the old deadline is past", func() bool { return w.waiterAge(2) > l.timeout+200*time.Millisecond })
	w.apply(func(l *layout) { l.timeout = 0 })
	for _, x := range w.waiters() {
		if x.DeadlineInMS != nil {
			t.Errorf("%+v has a deadline, and there is no timeout", x)
		}
	}
	if n := w.pending(); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// TestRefreshMaxQueueBelowTheDepthRefusesOnlyNewOnes: all that wait keep their places; new ones are refused until there
// is room under the new bound.
func TestRefreshMaxQueueBelowTheDepthRefusesOnlyNewOnes(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	flights := []*flight{w.start(ask{tag: "r0"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	for i := 1; i <= 5; i++ {
		flights = append(flights, w.queue(ask{tag: fmt.Sprint("r", i), model: "ornith-fast"}, i))
	}
	r := w.apply(func(l *layout) { l.queue = 2 })
	r.wantPath("provider_pool.max_queue", "live", 64, 2)
	if q := w.status().Queue; q.Pending != 5 || q.Max != 2 {
		t.Errorf("queue %+v", q)
	}
	for i := range 5 {
		a := w.ask(ask{tag: "too many"})
		if pending := 5 - i; pending < 2 {
			t.Errorf("status %d with %d pending", a.status, pending)
		}
		a.wantError(t, 429, "queue_full")
		if i == 3 {
			break
		}
		b.LetTag(fmt.Sprint("r", i))
		await(t, "the next runs", func() bool { return b.Stats().Total == i+2 && b.Stats().Held == 1 })
	}
	b.LetTag("r3")
	await(t, "the next runs", func() bool { return b.Stats().Total == 5 && b.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "r6"}, 2))
	a := w.ask(ask{tag: "too many"})
	a.wantError(t, 429, "queue_full")
	w.apply(func(l *layout) { l.queue = 3 })
	flights = append(flights, w.queue(ask{tag: "r7"}, 3))
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	if got := fmt.Sprint(b.Tags()); got != "[r0 r1 r2 r3 r4 r5 r6 r7]" {
		t.Errorf("order %s", got)
	}
	side.end()
}

// TestRefreshFenceTimeout: the new bound holds for the links that stand, not only for those to come: a node that never
// confirms the end of a run is given up after it.
func TestRefreshFenceTimeout(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.heartbeat, l.fence, l.grace = 60*time.Second, 60*time.Second, time.Millisecond
	w, side := newBusyWorld(t, l, "n2")
	w.apply(func(l *layout) { l.fence = 500 * time.Millisecond })
	s := w.open(ask{tag: "left"})
	s.next()
	freeze(t, w.nodes["n1"])
	s.leave()
	awaitWithin(t, 20*time.Second, "the slot is given back", func() bool { return w.provider("p1").InFlight == 0 })
	thaw(t, w.nodes["n1"])
	w.awaitLink("n1")
	b.LetAll()
	await(t, "a new request is served", func() bool {
		a := w.ask(ask{tag: "next"})
		return a.status == 200
	})
	side.end()
}

// TestRefreshLongContextThreshold: who counts as long is decided when a request comes.
func TestRefreshLongContextThreshold(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, layout{
		providers: []provider{{id: "p1", url: b.URL(), capacity: 4, long: 1, window: 131072}},
		models:    map[string][]string{"m": {"p1"}}, threshold: 1_000_000,
	}, "n1")
	flights := []*flight{w.start(longAsk("normal 1")), w.start(longAsk("normal 2"))}
	await(t, "both run", func() bool { return b.Stats().Held == 2 })
	r := w.apply(func(l *layout) { l.threshold = 1000 })
	r.wantPath("long_context_threshold_tokens", "live", 1_000_000, 1000)
	flights = append(flights, w.start(longAsk("long 1")))
	await(t, "a long one runs", func() bool { return b.Stats().Held == 3 })
	flights = append(flights, w.queue(longAsk("long 2"), 1))
	if p := w.provider("p1"); p.InFlight != 3 || p.LongInFlight != 1 || p.LongQueued != 1 {
		t.Errorf("provider %+v", p)
	}
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}
