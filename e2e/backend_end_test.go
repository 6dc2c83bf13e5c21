package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
)

func endBackendError(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1})
	w := newWorld(t, shared(b, 1))
	n := 0
	for _, status := range []int{400, 404, 408, 422, 500, 502, 504} {
		own := []byte(`{"error":{"message":"the backend's own words","type":"x","code":` + "\"c\"}}")
		b.Set(backend.Plan{Status: status, Body: own})
		for _, stream := range []bool{false, true} {
			a := w.want(status, ask{tag: "failing", stream: stream})
			if !bytes.Equal(a.body, own) || !a.clean {
				t.Errorf("%d: got %q, want the backend's own answer", status, a.body)
			}
			w.awaitIdle()
			n++
		}
		b.Set(backend.Plan{}) // a success in between: five failures at once in a row would degrade the provider
		w.want(200, ask{tag: "well"})
		n++
	}
	if got := b.Stats().Total; got != n {
		t.Errorf("%d runs for %d requests: what ran must not be repeated", got, n)
	}
	w.grants = uint64(n)
}

// deadAddress is an address where surely nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	b := newBackend(t, backend.Options{})
	b.Refuse()
	if _, err := net.Dial("tcp", b.Address()); err == nil {
		t.Fatal("somebody listens there")
	}
	return b.URL()
}

// endConnectRefused is also TestTrueCauseStaysVisible: no backend is no rate limit.
func endConnectRefused(t *testing.T) {
	l := layout{
		providers: []provider{{id: "p1", url: deadAddress(t)}, {id: "p2", node: "n2", url: deadAddress(t)}},
		models:    map[string][]string{"m": {"p1", "p2"}},
	}
	w := newWorld(t, l)
	for _, stream := range []bool{false, true} {
		a := w.ask(ask{tag: "refused", stream: stream})
		if a.status != 503 && a.status != 502 {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		if !strings.Contains(strings.ToLower(string(a.body)), "refused") {
			t.Errorf("the answer hides that the connection was refused: %s", a.body)
		}
		if got := a.header.Get("x-iop-dispatched"); got != "false" {
			t.Errorf("x-iop-dispatched %q, want false", got)
		}
		w.awaitIdle()
	}
	w.grants = 4 // each request tried both
}

func endFallsOver(t *testing.T) {
	b := newBackend(t, backend.Options{})
	w := newWorld(t, layout{
		providers: []provider{{id: "dead", url: deadAddress(t), priority: 0}, {id: "well", node: "n2", url: b.URL(), priority: 1}},
		models:    map[string][]string{"m": {"dead", "well"}},
	})
	for _, stream := range []bool{false, true} {
		a := w.want(200, ask{tag: "r", stream: stream})
		if a.text() != " 1 2 3" || a.header.Get("x-iop-provider") != "well" {
			t.Errorf("%q from %q", a.text(), a.header.Get("x-iop-provider"))
		}
		w.awaitIdle()
	}
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs for 2 requests", n)
	}
	w.grants = 4
}

// endBusyKeepsItsPlace: a request that its first backend did not run goes before one that came later.
func endBusyKeepsItsPlace(t *testing.T) {
	busy := backend.Busy()
	busy.Hold = backend.BeforeHead
	b1 := newBackend(t, backend.Options{Default: busy})
	b2 := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{
			{id: "p1", url: b1.URL(), kind: "llamacpp", priority: 0},
			{id: "p2", node: "n2", url: b2.URL(), kind: "llamacpp", priority: 1},
		},
		models: map[string][]string{"m": {"p1", "p2"}, "m2": {"p2"}},
	})
	x := w.start(ask{model: "m2", tag: "x"})
	await(t, "x runs", func() bool { return b2.Stats().Held == 1 })
	early := w.start(ask{tag: "early"})
	await(t, "early is at the busy backend", func() bool { return b1.Stats().Held == 1 })
	late := w.queue(ask{model: "m2", tag: "late"}, 1)
	b1.Let(1)
	w.awaitPending(2)
	if q := w.waiters(); q[0].Model != "m" || q[1].Model != "m2" {
		t.Errorf("the queue is %+v", q)
	}
	b2.LetAll()
	for _, f := range []*flight{x, early, late} {
		a := f.wait(t)
		a.want(t, 200)
	}
	if got := b2.Tags(); !slices.Equal(got, []string{"x", "early", "late"}) {
		t.Errorf("order %v", got)
	}
	w.awaitIdle()
	w.grants = 4
}

// endDropInMidStream: the client sees frames, an error event, and a broken end.
func endDropInMidStream(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Tokens: 9, Drop: backend.AfterTokens, At: 2, Hold: backend.AfterTokens}})
	w := newWorld(t, shared(b, 1))
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		s := w.open(ask{path: path, tag: "broken"})
		for range 2 {
			s.next()
		}
		b.Let(1)
		all, clean := s.rest()
		wantBroken(t, all, clean)
		w.awaitIdle()
	}
	w.grants = 2
}

// wantBroken checks the end of a stream whose backend broke.
func wantBroken(t *testing.T, all []string, clean bool) {
	t.Helper()
	if clean {
		t.Errorf("the broken stream ended cleanly after %q", all)
	}
	wantErrorEvent(t, all)
}

// wantErrorEvent checks that a stream's last frame tells of a failure.
func wantErrorEvent(t *testing.T, all []string) {
	t.Helper()
	if slices.Contains(all, "[DONE]") {
		t.Errorf("the broken stream says [DONE]: %q", all)
	}
	if len(all) == 0 {
		t.Error("the broken stream says nothing about why")
		return
	}
	var e struct{ Error *failure }
	if err := json.Unmarshal([]byte(all[len(all)-1]), &e); err != nil || e.Error == nil || e.Error.Message == "" {
		t.Errorf("the last frame is no error event: %q", all[len(all)-1])
	}
}

func endDropBeforeHead(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Drop: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	for _, stream := range []bool{false, true} {
		a := w.ask(ask{tag: "dropped", stream: stream})
		a.wantError(t, 502, "provider_error")
		w.awaitIdle()
	}
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs for 2 requests: it may have run, so it must not be repeated", n)
	}
	w.grants = 2
}

func endDropPlain(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Drop: backend.AfterTokens, Huge: 100_000}})
	w := newWorld(t, shared(b, 1))
	a := w.ask(ask{tag: "half"})
	if a.status == 200 && a.clean {
		t.Errorf("half an answer of %d bytes looks whole", len(a.body))
	}
	if a.status != 200 {
		a.wantError(t, 502, "provider_error")
	}
	w.awaitIdle()
	w.grants = 1
}
