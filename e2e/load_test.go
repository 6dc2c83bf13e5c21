package e2e

import (
	"fmt"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestHungBackendSlowsNobodyElse: with every slot of one backend hung, the other's requests go through.
func TestHungBackendSlowsNobodyElse(t *testing.T) {
	t.Parallel()
	hung := newBackend(t, backend.Options{Default: backend.Plan{Never: true}})
	well := newBackend(t, backend.Options{Limit: 1})
	w := newWorld(t, layout{
		providers: []provider{{id: "hung", url: hung.URL(), capacity: 40}, {id: "well", url: well.URL()}},
		models:    map[string][]string{"hung": {"hung"}, "well": {"well"}},
	})
	for i := range 50 {
		w.start(ask{model: "hung", tag: fmt.Sprint("hung", i), stream: i%2 == 0})
	}
	await(t, "40 hang, 10 wait", func() bool { return hung.Stats().Current == 40 && w.pending() == 10 })
	for i := range 50 {
		w.want(200, ask{model: "well", tag: fmt.Sprint("well", i), stream: i%2 == 0})
	}
	for _, l := range w.awaitLeases(40) {
		if l.Provider != "hung" {
			t.Errorf("lease %+v", l)
		}
	}
}

// TestReadinessUnderBigStreams: 30 streams of 5 MiB at the same time don't starve the probes.
func TestReadinessUnderBigStreams(t *testing.T) {
	t.Parallel()
	text := make([]string, 320)
	for i := range text {
		text[i] = strings.Repeat("0123456789abcdef", 1024)
	}
	b := newBackend(t, backend.Options{Default: backend.Plan{Text: text}})
	w := newWorld(t, shared(b, 30))
	var flights []*flight
	for i := range 30 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("big", i), stream: true}))
	}
	probes, over := 0, false
	for !over {
		for _, path := range []string{"/healthz", "/readyz"} {
			if _, err := tryFetch(w.edge.openai, path); err != nil {
				t.Error(err)
			}
			probes++
		}
		over = true
		for _, f := range flights {
			over = over && f.over()
		}
	}
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
		if n := len(a.text()); n != 5<<20 {
			t.Errorf("%s has %d bytes", a.tag, n)
		}
	}
	t.Logf("%d probes were answered during 30 streams of 5 MiB", probes)
	w.awaitIdle()
}

// TestFailingEveryThird: a backend that fails now and then loses no slot and nobody's place.
func TestFailingEveryThird(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, FailEvery: 3})
	w := newWorld(t, shared(b, 2))
	var flights []*flight
	for i := range 60 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i), stream: i%2 == 0}))
	}
	count := map[int]int{}
	for _, f := range flights {
		a := f.wait(t)
		count[a.status]++
	}
	if count[200] != 40 || count[500] != 20 {
		t.Errorf("statuses %v", count)
	}
	w.awaitIdle()
	if s := b.Stats(); s.Violations != 0 || s.Total != 60 {
		t.Errorf("backend %+v", s)
	}
	w.grants = 60
}

// TestLeastBusyGetsTheNext: the choice is by in-flight, then priority, then in turn.
func TestLeastBusyGetsTheNext(t *testing.T) {
	t.Parallel()
	b1 := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	b2 := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{
			{id: "p1", url: b1.URL(), capacity: 3, priority: 2}, {id: "p2", node: "n2", url: b2.URL(), capacity: 3, priority: 1},
		},
		models: map[string][]string{"m": {"p1", "p2"}},
	})
	for n := 1; n <= 6; n++ {
		w.start(ask{tag: fmt.Sprint("r", n)})
		await(t, fmt.Sprint(n, " run"), func() bool { return b1.Stats().Held+b2.Stats().Held == n })
		if x, y := b1.Stats().Held, b2.Stats().Held; y-x != n%2 {
			t.Errorf("after %d requests p1 has %d and p2 %d", n, x, y)
		}
	}
	b1.LetAll()
	b2.LetAll()
	w.awaitIdle()
}

// TestMetricsCarryNoClientStrings: what a client chooses never becomes a label, and the counters tell what happened.
func TestMetricsCarryNoClientStrings(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	for i := range 5 {
		w.ask(ask{model: fmt.Sprint("chosen-by-a-client-", i), tag: "chosen-by-a-client"})
		w.ask(ask{path: fmt.Sprint("/v1/chosen-by-a-client-", i)})
		w.want(200, ask{tag: "chosen-by-a-client", key: fmt.Sprint("chosen-by-a-client-", i)})
	}
	w.awaitIdle()
	page := string(fetch(t, w.edge.admin, "/metrics"))
	if strings.Contains(page, "chosen-by-a-client") {
		t.Error("a client's string is in the metrics")
	}
	granted, returned := w.metric("iop_leases_granted_total"), w.metric("iop_leases_returned_total")
	if ok := w.metric("iop_requests_total", `model="m"`); granted != 5 || returned != 5 || ok != 5 {
		t.Errorf("5 requests: granted %v, returned %v, counted %v", granted, returned, ok)
	}
	if !strings.Contains(page, `model="m"`) || !strings.Contains(page, `provider="p1"`) {
		t.Errorf("the metrics lack the model or the provider:\n%s", tail(page, 60))
	}
}
