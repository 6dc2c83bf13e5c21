package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"iop/e2e/backend"
)

// listed are the ids that GET /v1/models shows.
func (w *world) listed() []string {
	w.t.Helper()
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(fetch(w.t, w.edge.openai, "/v1/models"), &list); err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, m := range list.Data {
		out = append(out, m.ID)
	}
	return out
}

// TestRefreshRemovedModelEndsItsWaiters: they end at once as an unknown model; its running requests run on; waiters of
// other models at the same provider keep their places.
func TestRefreshRemovedModelEndsItsWaiters(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	running := w.start(ask{tag: "running", model: "ornith-fast", stream: true})
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	gone := []*flight{w.queue(ask{tag: "gone 1", model: "ornith-fast"}, 1)}
	stays := []*flight{w.queue(ask{tag: "stays 1"}, 2)}
	gone = append(gone, w.queue(ask{tag: "gone 2", model: "ornith-fast", stream: true}, 3))
	stays = append(stays, w.queue(ask{tag: "stays 2", model: "ornith:35b"}, 4))
	r := w.apply(func(l *layout) { delete(l.models, "ornith-fast") })
	r.wantTouched("", "ornith-fast")
	if r.WaitersAffected != 2 {
		t.Errorf("%d waiters are affected, want 2: %s", r.WaitersAffected, r.raw)
	}
	for _, f := range gone {
		a := f.wait(t)
		a.wantError(t, 404, "model_not_found")
	}
	a := w.ask(ask{tag: "late", model: "ornith-fast"})
	a.wantError(t, 404, "model_not_found")
	if got := w.listed(); slices.Contains(got, "ornith-fast") || !slices.Contains(got, "m") {
		t.Errorf("listed: %v", got)
	}
	if n := w.pending(); n != 2 || b.Stats().Held != 1 {
		t.Errorf("%d wait, want 2", n)
	}
	b.LetAll()
	for _, f := range append(stays, running) {
		a := f.wait(t)
		a.want(t, 200)
		if a.text() != " 1 2 3" {
			t.Errorf("%s got %q", a.tag, a.text())
		}
	}
	a = running.wait(t)
	if modelOf(&a) != "ornith-fast" {
		t.Errorf("the running one was answered as %q", modelOf(&a))
	}
	w.apply(func(l *layout) { l.models["ornith-fast"] = []string{"p1"} })
	w.want(200, ask{tag: "again", model: "ornith-fast"})
	side.end()
	if got := fmt.Sprint(b.Tags()); got != "[running stays 1 stays 2 again]" {
		t.Errorf("order %s", got)
	}
}

// TestRefreshAddedModelIsUsedAtOnce: a client that asks for a model all the time gets 404 until the refresh, an answer
// after it, and never 404 again; the one who added it uses it in his next call. The served name is new to the node too.
func TestRefreshAddedModelIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 2), "n1")
	for round := range rounds(8, 80) {
		model, name := fmt.Sprint("new-", round), fmt.Sprint("served/new-", round)
		ctx, cancel := context.WithCancel(context.Background())
		var eager sync.WaitGroup
		eager.Go(func() { eagerClient(ctx, t, w.edge.openai, model) })
		r := w.apply(func(l *layout) {
			l.edits[fmt.Sprintf("nodes[0].providers[0].models[%d]", round+1)] = name
			l.edits[fmt.Sprintf("models[%d]", 4+round)] = map[string]any{"id": model, "providers": map[string]string{"p1": name}}
		})
		a := w.want(200, ask{model: model, tag: model})
		if run, _ := b.Run(model); run.Model != name || modelOf(&a) != model {
			t.Errorf("%s: served as %q, answered as %q", model, run.Model, modelOf(&a))
		}
		r.wantTouched("p1", model)
		if !slices.Contains(w.listed(), model) {
			t.Errorf("%s is not listed", model)
		}
		cancel()
		eager.Wait()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	side.end()
}

// eagerClient asks for a model until ctx ends, and wants no 404 any more after the first answer.
func eagerClient(ctx context.Context, t *testing.T, address, model string) {
	known := false
	for ctx.Err() == nil {
		a := call(ctx, address, ask{model: model, tag: "eager"})
		switch {
		case ctx.Err() != nil:
		case a.status == 200:
			known = true
		case a.status != 404 || known:
			t.Errorf("%s, known %v: status %d: %s", model, known, a.status, a.body)
			return
		}
	}
}

// TestRefreshServedNameChange: what runs keeps the old name at the backend; what waits or comes gets the new one. The
// client sees its own name in every answer.
func TestRefreshServedNameChange(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	flights := []*flight{w.start(ask{tag: "running", stream: true})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "waiting"}, 1), w.queue(ask{tag: "waiting stream", stream: true}, 2))
	r := w.apply(func(l *layout) {
		l.edits["nodes[0].providers[0].models[0]"] = "served/other"
		for i := range 3 { // m, ornith-fast, ornith:35b; the fourth is the traffic's
			l.edits[fmt.Sprintf("models[%d].providers.p1", i)] = "served/other"
		}
	})
	r.wantTouched("p1", "m ornith-fast ornith:35b")
	r.wantPath("models[m].providers.p1", "live", served("p1"), "served/other")
	flights = append(flights, w.queue(ask{tag: "new"}, 3))
	b.LetAll()
	for i, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
		want := "served/other"
		if i == 0 {
			want = served("p1")
		}
		if run, _ := b.Run(f.ask.tag); run.Model != want || modelOf(&a) != "m" {
			t.Errorf("%s: served as %q, want %q; answered as %q", f.ask.tag, run.Model, want, modelOf(&a))
		}
	}
	side.end()
}

// TestRefreshGenerationPolicy: new requests get the new defaults and caps; the same connection, the same second.
func TestRefreshGenerationPolicy(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	asked := 0
	gets := func(body string, parts ...string) {
		t.Helper()
		asked++
		tag := fmt.Sprint("r", asked)
		w.want(200, ask{body: []byte(`{"model":"m","user":"` + tag + `"` + body + `}`)})
		run, _ := b.Run(tag)
		for _, part := range parts {
			if !strings.Contains(string(run.Body), part) {
				t.Errorf("the backend got %s, want %s in it", run.Body, part)
			}
		}
		if len(parts) == 0 && strings.Contains(string(run.Body), "max_tokens") {
			t.Errorf("the backend got %s, and there is no policy", run.Body)
		}
	}
	policy := func(p any) refreshReport {
		t.Helper()
		return w.apply(func(l *layout) { l.edits["models[0].generation"] = p })
	}
	gets("")
	r := policy(map[string]any{"max_tokens": 100, "temperature": 0.5})
	r.wantTouched("", "m")
	r.wantPath("models[m].generation.max_tokens", "live", nil, 100)
	r.wantPath("models[m].generation.temperature", "live", nil, 0.5)
	gets("", `"max_tokens":100`, `"temperature":0.5`)
	gets(`,"max_tokens":500`, `"max_tokens":100`)
	r = policy(map[string]any{"max_tokens": 50, "temperature": 0.5})
	r.wantPath("models[m].generation.max_tokens", "live", 100, 50)
	gets(`,"max_tokens":500`, `"max_tokens":50`)
	gets(`,"max_tokens":7`, `"max_tokens":7`)
	policy(absent)
	gets("")
	side.end()
}
