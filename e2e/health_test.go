package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestRefusingBackendAttractsNotEverything: a backend that refuses every connection is always the least busy one, and is
// soon out of the choice; no request is lost to it; when it listens again it gets its share again.
func TestRefusingBackendAttractsNotEverything(t *testing.T) {
	t.Parallel()
	dead := newBackend(t, backend.Options{})
	well := newBackend(t, backend.Options{Limit: 2})
	dead.Refuse()
	w := newWorld(t, layout{
		providers: []provider{{id: "dead", url: dead.URL(), capacity: 4}, {id: "well", node: "n2", url: well.URL(), capacity: 2}},
		models:    map[string][]string{"m": {"dead", "well"}, "only": {"dead"}},
	})
	for i := range 20 {
		a := w.want(200, ask{tag: fmt.Sprint("r", i)})
		if got := a.header.Get("x-iop-provider"); got != "well" {
			t.Errorf("r%d was answered by %q", i, got)
		}
	}
	await(t, "the refusing provider is degraded", func() bool { return w.provider("dead").Status == "degraded" })
	if p := w.provider("dead"); p.Cause == "" || p.Health != "degraded" || !p.Connected {
		t.Errorf("provider %+v", p)
	}
	before := w.metric("iop_leases_granted_total", `provider="dead"`)
	for i := range 20 {
		w.want(200, ask{tag: fmt.Sprint("s", i)})
	}
	if got := w.metric("iop_leases_granted_total", `provider="dead"`); got != before {
		t.Errorf("the degraded provider got %v more leases", got-before)
	}
	a := w.ask(ask{model: "only", tag: "only"})
	a.wantError(t, 503, "provider_unavailable")
	if err := dead.Accept(); err != nil {
		t.Fatal(err)
	}
	await(t, "the provider is well again", func() bool { return w.provider("dead").Status == "available" })
	w.want(200, ask{model: "only", tag: "only"})
	w.awaitIdle()
}

// TestHealthCheckTakesAProviderOut and in again; waiters without another candidate end at once.
func TestHealthCheckTakesAProviderOut(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.providers[0].check, l.grace = 100*time.Millisecond, time.Millisecond
	w := newWorld(t, l)
	await(t, "the provider is well", func() bool { return w.provider("p1").Status == "available" })
	running := w.start(ask{tag: "running"})
	w.awaitLeases(1)
	waiting := w.queue(ask{tag: "waiting"}, 1)
	b.SetWell(false)
	a := waiting.wait(t)
	a.wantError(t, 503, "provider_unavailable")
	if got := w.provider("p1"); got.Status != "degraded" || got.InFlight != 1 {
		t.Errorf("provider %+v", got)
	}
	b.SetWell(true)
	await(t, "the provider is well again", func() bool { return w.provider("p1").Health == "healthy" })
	next := w.queue(ask{tag: "next"}, 1)
	b.LetAll()
	for _, f := range []*flight{running, next} {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	w.grants = 2
}

// TestFrozenNodeComesBack: a node that was fenced while it stood still ends what it ran before it takes anything new: the
// backend never has more than its capacity.
func TestFrozenNodeComesBack(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.heartbeat, l.grace = 300*time.Millisecond, 30*time.Second
	w := newWorld(t, l)
	for round := range 3 {
		g := w.awaitLink("n1")
		s := w.open(ask{tag: fmt.Sprint("old", round)})
		s.next()
		freeze(t, w.nodes["n1"])
		await(t, "the frozen node is fenced", func() bool { return !w.node("n1").Connected })
		all, clean := s.rest()
		wantBroken(t, all, clean)
		next := w.queue(ask{tag: fmt.Sprint("new", round)}, 1)
		thaw(t, w.nodes["n1"])
		await(t, "the new one runs", func() bool { return b.Stats().Total == 2*round+2 })
		if got := w.link("n1"); got != g+1 {
			t.Errorf("generation %d after %d", got, g)
		}
		b.Let(1)
		a := next.wait(t)
		a.want(t, 200)
		w.awaitIdle()
	}
	if s := b.Stats(); s.Violations != 0 || s.Peak != 1 || s.Aborted != 3 {
		t.Errorf("backend %+v", s)
	}
	w.grants = 6
}

// TestFailingBackendAttractsNotEverything: a backend that answers everything with 500 at once is always the least busy one, and is
// soon left alone; after a pause one request tries it again, and when it works it gets its share.
func TestFailingBackendAttractsNotEverything(t *testing.T) {
	t.Parallel()
	failing := newBackend(t, backend.Options{Default: backend.Plan{Status: 500}})
	well := newBackend(t, backend.Options{Limit: 2})
	w := newWorld(t, layout{
		providers: []provider{{id: "failing", url: failing.URL(), capacity: 4}, {id: "well", node: "n2", url: well.URL(), capacity: 2}},
		models:    map[string][]string{"m": {"failing", "well"}},
	})
	failed := 0
	for i := 0; w.provider("failing").Status != "degraded"; i++ {
		if a := w.ask(ask{tag: fmt.Sprint("r", i)}); a.status != 200 {
			failed++
		}
		if failed > 12 { // five in a row, and what was under way until the edge knew
			t.Fatalf("%d requests failed and it still gets more", failed)
		}
	}
	if p := w.provider("failing"); !strings.Contains(p.Cause, "times in a row: status 500") {
		t.Errorf("provider %+v", p)
	}
	failing.Set(backend.Plan{})
	await(t, "it gets requests again", func() bool {
		a := w.ask(ask{})
		a.want(t, 200)
		return a.header.Get("x-iop-provider") == "failing"
	})
	w.awaitIdle()
}
