package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/otlp"
)

func tracePlain(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Usage: true}})
	l := shared(b, 1)
	l.tokens = map[string]string{"alice": "alices-token"}
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	a := w.want(200, ask{tag: "plain", header: h, token: "alices-token"})
	by := c.wantTree(trace, straight)
	inOrder(t, by, "admit", "dispatch")
	root, bs := by[chatRoot], by["backend"]
	if root.Parent != "b7ad6b7169203331" || root.State != "vendor=1" || root.Kind != "server" || root.Service != "iop-edge" || root.Instance != "edge-1" ||
		by["dispatch"].Kind != "client" || by["node"].Kind != "server" || by["node"].Service != "iop-node" || by["node"].Instance != "n1" || bs.Kind != "client" {
		t.Errorf("root %+v, node %+v", root, by["node"])
	}
	wantAttrs(t, root, map[string]string{
		"iop.request": a.header.Get("x-request-id"), "iop.principal_ref": "team-alice", "iop.class": "normal", "http.response.status_code": "200",
		"http.route": "/v1/chat/completions", "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "*",
		"gen_ai.usage.output_tokens": "*", "gen_ai.request.stream": "false", "iop.provider": "p1", "iop.node": "n1",
	})
	wantAttrs(t, by["admit"], map[string]string{"iop.commit.index": "*", "iop.lease": a.header.Get("x-iop-lease")})
	wantAttrs(t, by["dispatch"], map[string]string{"iop.lease": a.header.Get("x-iop-lease"), "iop.generation": "*", "iop.attempt": "1", "iop.dispatched": "true"})
	wantAttrs(t, by["node"], map[string]string{"iop.request": a.header.Get("x-request-id"), "iop.lease": a.header.Get("x-iop-lease"), "iop.dispatched": "yes"})
	wantAttrs(t, bs, map[string]string{"gen_ai.request.model": served("p1"), "gen_ai.provider.name": "openai_compat", "http.response.status_code": "200"})
	r, _ := b.Run("plain")
	if got := r.Header.Get("Traceparent"); got != "00-"+trace+"-"+bs.ID+"-01" || r.Header.Get("Tracestate") != "vendor=1" || r.Header.Get("Iop-Request") != "" {
		t.Errorf("the backend got %q, its span is %s", got, bs.ID)
	}
	if c.edge.Header("x-tenant") != "t1" {
		t.Error("the headers of the configuration are not sent")
	}
	exemplars(t, w, trace)
}

// exemplars looks for a trace among the metrics of times.
func exemplars(t *testing.T, w *world, trace string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.edge.admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	res, err := newClient().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `trace_id="`+trace+`"`); n != 3 {
		t.Errorf("the trace is %d times among the metrics, want it with wait, first byte and duration", n)
	}
}

func traceStream(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Usage: true}})
	l := shared(b, 1)
	c := traced(t, &l)
	w := newWorld(t, l)
	for path, root := range map[string]string{"": chatRoot, "/v1/responses": "POST /v1/responses", "/v1/completions": "POST /v1/completions"} {
		h, trace := c.parent()
		w.want(200, ask{tag: "s" + path, header: h, path: path, stream: true})
		by := c.wantTree(trace, root+` ok
  admit granted
  dispatch p1
    node
      backend
`)
		if path == "" {
			inOrder(t, by, "admit", "dispatch")
		}
		wantAttrs(t, by[root], map[string]string{"gen_ai.request.stream": "true", "gen_ai.usage.input_tokens": "*", "gen_ai.response.time_to_first_chunk": "*"})
	}
}

func traceQueued(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.queue = 1
	c := traced(t, &l)
	w := newWorld(t, l)
	first := w.start(ask{tag: "first"})
	w.awaitLeases(1)
	h, trace := c.parent()
	second := w.queue(ask{tag: "second", header: h, stream: true}, 1)
	full, refused := c.parent()
	third := w.ask(ask{tag: "third", header: full})
	third.wantError(t, 429, "queue_full")
	wrong, missing := c.parent()
	fourth := w.ask(ask{tag: "fourth", model: "nobody", header: wrong})
	fourth.wantError(t, 404, "model_not_found")
	b.LetAll()
	for _, f := range []*flight{first, second} {
		a := f.wait(t)
		a.want(t, 200)
	}
	by := c.wantTree(trace, `
POST /v1/chat/completions ok
  admit queued
  wait granted
  dispatch p1
    node
      backend
`)
	inOrder(t, by, "admit", "wait", "dispatch")
	wantAttrs(t, by["wait"], map[string]string{"iop.queue.position": "1", "iop.queue.reason": "full", "iop.commit.index": "*"})
	wantAttrs(t, by["admit"], map[string]string{"iop.commit.index": "*"})
	by = c.wantTree(refused, `
POST /v1/chat/completions queue_full queue_full!
  admit queue_full queue_full!
`)
	wantAttrs(t, by[chatRoot], map[string]string{"http.response.status_code": "429"})
	by = c.wantTree(missing, "POST /v1/chat/completions model_not_found model_not_found\n")
	if by[chatRoot].Attrs["gen_ai.request.model"] != "" {
		t.Error("a name that only the client knows is in the trace")
	}
}

func traceRequeued(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := layout{
		providers: []provider{{id: "dead", url: deadAddress(t), priority: 0}, {id: "well", node: "n2", url: b.URL(), priority: 1}},
		models:    map[string][]string{"m": {"dead", "well"}, "lost": {"dead"}},
	}
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	w.want(200, ask{tag: "r", header: h})
	by := c.wantTree(trace, `
POST /v1/chat/completions ok
  admit granted
  dispatch dead connect_failed!
    node connect_failed!
      backend connect_failed!
  admit granted
  dispatch well
    node
      backend
`)
	wantAttrs(t, by["admit"], map[string]string{"iop.requeue": "true"})
	for _, s := range c.all() {
		if s.Trace == trace && s.Attrs["iop.provider"] == "well" && s.Name == "dispatch" && s.Attrs["iop.attempt"] != "2" {
			t.Errorf("the second attempt is %q", s.Attrs["iop.attempt"])
		}
	}
	h, trace = c.parent()
	w.want(503, ask{tag: "lost", model: "lost", header: h})
	c.wantTree(trace, `
POST /v1/chat/completions unavailable provider_unavailable!
  admit granted
  dispatch dead connect_failed!
    node connect_failed!
      backend connect_failed!
  admit unavailable provider_unavailable!
`)
}

// traceBackground: what runs later is a trace of its own, with a link to the one that asked for it.
func traceBackground(t *testing.T) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Usage: true}})
	l := shared(b, 1)
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	w.want(200, ask{path: "/v1/responses", header: h, body: []byte(`{"model":"m","input":"hello","background":true,"user":"bg"}`)})
	c.wantTree(trace, "POST /v1/responses ok\n")
	var run otlp.Span
	await(t, "the run's trace", func() bool {
		for _, s := range c.edge.Spans() {
			if s.Name == "background /v1/responses" {
				run = s
			}
		}
		return run.ID != ""
	})
	if len(run.Links) != 1 || run.Links[0] != trace || run.Trace == trace || run.Parent != "" {
		t.Errorf("the run is %+v", run)
	}
	c.wantTree(run.Trace, `
background /v1/responses ok
  admit granted
  dispatch p1
    node
      backend
`)
}
