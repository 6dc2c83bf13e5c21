package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// pair is a system of two providers on two nodes, with a model for each and one for both.
func pair(b1, b2 *backend.Backend, capacity int) layout {
	return layout{
		providers: []provider{{id: "p1", url: b1.URL(), capacity: capacity}, {id: "p2", node: "n2", url: b2.URL(), capacity: capacity}},
		models:    map[string][]string{"only1": {"p1"}, "only2": {"p2"}, "both": {"p1", "p2"}},
	}
}

// TestRefreshDisableMovesOrEndsWaiters: with p1 disabled, those who could only have p1 end at once; those who can have
// p2 wait for it in their order; what runs at p1 runs on. Enabled again, nobody is stranded.
func TestRefreshDisableMovesOrEndsWaiters(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Limit: 1, Default: hold}), newBackend(t, backend.Options{Limit: 1, Default: hold})
	w, side := newBusyWorld(t, pair(b1, b2, 1), "n1")
	running := []*flight{w.start(ask{tag: "h1", model: "only1"}), w.start(ask{tag: "h2", model: "only2"})}
	await(t, "both are full", func() bool { return b1.Stats().Held == 1 && b2.Stats().Held == 1 })
	var alone, others []*flight
	for i := range 3 {
		alone = append(alone, w.queue(ask{model: "only1", tag: fmt.Sprint("alone", i), stream: i == 1}, 2*i+1))
		others = append(others, w.queue(ask{model: "both", tag: fmt.Sprint("other", i)}, 2*i+2))
	}
	disable := func(l *layout) { l.providers[0].disabled = true }
	dry := w.refresh(200, "dry_run", "?dry_run=true", disable)
	r := w.apply(disable)
	r.wantPath("nodes[n1].providers[p1].enabled", "live", true, false)
	r.wantTouched("p1", "")
	for _, x := range []refreshReport{dry, r} {
		if x.WaitersAffected != 6 {
			t.Errorf("%d waiters are affected, want all 6: %s", x.WaitersAffected, x.raw)
		}
	}
	for _, f := range alone {
		a := f.wait(t)
		a.wantError(t, 503, "provider_unavailable")
		a.wantRetry(t)
	}
	a := w.ask(ask{model: "only1", tag: "late"})
	a.wantError(t, 503, "provider_unavailable")
	if p := w.provider("p1"); p.Enabled || p.Status != "disabled" || p.InFlight != 1 {
		t.Errorf("provider %+v", p)
	}
	if n := w.pending(); n != 3 || b1.Stats().Held != 1 {
		t.Errorf("%d wait, want 3; at p1: %+v", n, b1.Stats())
	}
	b2.LetTag("h2")
	await(t, "the first of the others moved", func() bool { return slices.Equal(b2.Tags(), []string{"h2", "other0"}) })

	r = w.apply(func(l *layout) { l.providers[0].disabled = false })
	if r.WaitersAffected != 2 {
		t.Errorf("%d waiters are affected, want 2: %s", r.WaitersAffected, r.raw)
	}
	again := w.queue(ask{model: "only1", tag: "again"}, 3) // p1 is full: h1 still runs
	b1.LetTag("h1")
	await(t, "the second of the others has p1", func() bool { return slices.Equal(b1.Tags(), []string{"h1", "other1"}) })
	b1.LetAll()
	b2.LetAll()
	for _, f := range append(append(running, others...), again) {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
	if got := b1.Tags(); len(got) < 3 || b1.Stats().Violations+b2.Stats().Violations != 0 {
		t.Errorf("p1 had %v, p2 %v", got, b2.Tags())
	}
}

// TestRefreshEnableWakesWaiters: of a model whose second provider was disabled, the first waiter goes the moment that it
// is enabled; a model without any other is refused before and served after.
func TestRefreshEnableWakesWaiters(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Limit: 1, Default: hold}), newBackend(t, backend.Options{Limit: 1, Default: hold})
	l := pair(b1, b2, 1)
	l.providers[0].disabled = true
	w, side := newBusyWorld(t, l, "n1")
	flights := []*flight{w.start(ask{tag: "first", model: "both"})}
	await(t, "p2 is full", func() bool { return b2.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "second", model: "both"}, 1), w.queue(ask{tag: "third", model: "only2"}, 2))
	a := w.ask(ask{tag: "none", model: "only1"})
	a.wantError(t, 503, "provider_unavailable")
	w.apply(func(l *layout) { l.providers[0].disabled = false })
	await(t, "the second runs at p1", func() bool { return slices.Equal(b1.Tags(), []string{"second"}) })
	b1.LetAll()
	b2.LetAll()
	flights = append(flights, w.start(ask{tag: "fourth", model: "only1"}))
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// TestRefreshPrioritySwapChangesTheNextChoiceOnly: what runs stays where it is.
func TestRefreshPrioritySwapChangesTheNextChoiceOnly(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Default: hold}), newBackend(t, backend.Options{Default: hold})
	l := pair(b1, b2, 3)
	l.providers[0].priority, l.providers[1].priority = 1, 2
	w, side := newBusyWorld(t, l, "n1")
	var flights []*flight
	next := func(at1, at2 int) {
		t.Helper()
		tag := fmt.Sprint("r", len(flights))
		flights = append(flights, w.start(ask{tag: tag, model: "both"}))
		await(t, fmt.Sprintf("%s runs: %d at p1, %d at p2", tag, at1, at2), func() bool {
			return b1.Stats().Held+b2.Stats().Held == len(flights)
		})
		if x, y := b1.Stats().Held, b2.Stats().Held; x != at1 || y != at2 {
			t.Errorf("after %s: %d at p1, %d at p2, want %d, %d", tag, x, y, at1, at2)
		}
	}
	next(1, 0)
	next(1, 1)
	leases := w.leases()
	r := w.apply(func(l *layout) { l.providers[0].priority, l.providers[1].priority = 2, 1 })
	r.wantPath("nodes[n1].providers[p1].priority", "live", 1, 2)
	r.wantPath("nodes[n2].providers[p2].priority", "live", 2, 1)
	r.wantTouched("p1 p2", "")
	for _, was := range leases {
		if was.Provider != "side" && !slices.ContainsFunc(w.leases(), func(is adminapi.Lease) bool { return is.ID == was.ID && is.Provider == was.Provider }) {
			t.Errorf("the lease %+v was touched", was)
		}
	}
	next(1, 2)
	next(2, 2)
	b1.LetAll()
	b2.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// TestRefreshHealthCheck: a check that begins finds out that the backend is not well, and one that is taken away again
// leaves the provider as good as one that never had any.
func TestRefreshHealthCheck(t *testing.T) {
	t.Parallel()
	b1, b2 := newBackend(t, backend.Options{}), newBackend(t, backend.Options{})
	b1.SetWell(false)
	w, side := newBusyWorld(t, pair(b1, b2, 1), "n1")
	w.want(200, ask{model: "only1", tag: "unasked"})
	r := w.apply(func(l *layout) { l.providers[0].check = 100 * time.Millisecond })
	r.wantTouched("p1", "")
	await(t, "p1 is degraded", func() bool { return w.provider("p1").Health == "degraded" })
	a := w.want(200, ask{model: "both", tag: "moved"})
	if got := a.header.Get("x-iop-provider"); got != "p2" {
		t.Errorf("served by %q", got)
	}
	w.apply(func(l *layout) { l.providers[0].check = 0 })
	await(t, "p1 is well without a check", func() bool { return w.provider("p1").Health == "healthy" })
	w.want(200, ask{model: "only1", tag: "unasked again"})
	side.end()
}

// TestRefreshContextWindow: a waiter that has become too long for every candidate ends at once; one that came too early
// for a larger window is served after it.
func TestRefreshContextWindow(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.providers[0].window = 131072
	w, side := newBusyWorld(t, l, "n1")
	running := w.start(longAsk("running"))
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	tooLong, short := w.queue(longAsk("too long"), 1), w.queue(ask{tag: "short"}, 2)
	r := w.apply(func(l *layout) { l.providers[0].window = 200 })
	r.wantPath("nodes[n1].providers[p1].context_window_tokens", "live", 131072, 200)
	if r.WaitersAffected != 1 {
		t.Errorf("%d waiters are affected, want 1: %s", r.WaitersAffected, r.raw)
	}
	a := tooLong.wait(t)
	a.wantError(t, 400, "context_length_exceeded")
	a = w.ask(longAsk("late"))
	a.wantError(t, 400, "context_length_exceeded")
	w.apply(func(l *layout) { l.providers[0].window = 0 })
	again := w.queue(longAsk("again"), 2)
	b.LetAll()
	for _, f := range []*flight{running, short, again} {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
	if got := fmt.Sprint(b.Tags()); got != "[running short again]" {
		t.Errorf("order %s", got)
	}
}
