package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/otlp"
	"iop/proto/spans"
)

// tracing is where edge and nodes export to: the one over gRPC, the others over HTTP.
type tracing struct {
	t           testing.TB
	edge, nodes *otlp.Collector
	n           int
}

// traced has a layout traced.
func traced(t testing.TB, l *layout) *tracing {
	t.Helper()
	c := &tracing{t: t}
	for protocol, to := range map[string]**otlp.Collector{spans.ProtocolGRPC: &c.edge, spans.ProtocolHTTP: &c.nodes} {
		var err error
		if *to, err = otlp.New(protocol); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((*to).Close)
	}
	l.edge = map[string]any{"traces": map[string]any{"endpoint": c.edge.URL, "headers": map[string]string{"x-tenant": "t1"}}}
	l.node = map[string]any{"traces": map[string]any{"endpoint": c.nodes.URL, "protocol": "http"}}
	return c
}

// parent is a client's traceparent, and the id of its trace.
func (c *tracing) parent() (h http.Header, trace string) {
	c.n++
	trace = fmt.Sprintf("0af7651916cd43dd8448eb21%08x", c.n)
	return http.Header{"Traceparent": {"00-" + trace + "-b7ad6b7169203331-01"}, "Tracestate": {"vendor=1"}}, trace
}

func (c *tracing) all() []otlp.Span { return append(c.edge.Spans(), c.nodes.Spans()...) }

// line is what a tree shows of a span beside its name.
func line(s *otlp.Span) string {
	out := ""
	for _, a := range []string{"iop.outcome", "iop.provider", "error.type"} {
		if v := s.Attrs[a]; v != "" && (a != "iop.provider" || s.Name == "dispatch") {
			out += " " + v
		}
	}
	if s.Error != "" {
		out += "!"
	}
	return out
}

// wantTree waits until a trace looks like this, and returns its spans by name; of several of a name the last.
func (c *tracing) wantTree(trace, want string) map[string]otlp.Span {
	c.t.Helper()
	want = strings.TrimLeft(want, "\n")
	got := ""
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the trace is\n%s", got)
		}
	}()
	await(c.t, "the trace\n"+want, func() bool { got = otlp.Tree(c.all(), trace, line); return got == want })
	by := map[string]otlp.Span{}
	for _, s := range c.all() {
		if s.Trace == trace {
			by[s.Name] = s
		}
	}
	return by
}

const chatRoot = "POST /v1/chat/completions"

// inOrder wants times that follow each other: each step ends before the next begins, and lies within what it is part of.
func inOrder(t *testing.T, by map[string]otlp.Span, steps ...string) {
	t.Helper()
	root := by[chatRoot]
	for i, name := range steps {
		s := by[name]
		if s.Start.Before(root.Start) || s.End.After(root.End) || s.End.Before(s.Start) {
			t.Errorf("%s lies outside of the request", name)
		}
		if i > 0 && s.Start.Before(by[steps[i-1]].End) {
			t.Errorf("%s begins before %s has ended", name, steps[i-1])
		}
	}
	if d, n, b := by["dispatch"], by["node"], by["backend"]; n.ID != "" {
		first, ok := b.Event("first byte")
		atEdge, ok2 := d.Event("first byte")
		if n.Start.Before(d.Start) || b.Start.Before(n.Start) || b.End.After(n.End) || !ok || !ok2 || first.At.Before(b.Start) || atEdge.At.Before(first.At) {
			t.Errorf("dispatch %v, node %v, backend %v, first byte %v %v", d.Start, n.Start, b.Start, first.At, atEdge.At)
		}
		if _, ok := n.Event("gate"); !ok {
			t.Error("the node tells nothing of its gate")
		}
	}
}

// wantAttrs wants attributes of a span.
func wantAttrs(t *testing.T, s otlp.Span, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got := s.Attrs[k]; got != v && (v != "*" || got == "" || got == "0") {
			t.Errorf("%s: %s is %q, want %q", s.Name, k, got, v)
		}
	}
}

// TestTraceOfEachEnd: one trace shows a request's whole way through edge, node and backend, whatever becomes of it.
func TestTraceOfEachEnd(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]func(*testing.T){
		"Plain": tracePlain, "Stream": traceStream, "QueuedAndRefused": traceQueued, "Requeued": traceRequeued, "ClientGone": traceClientGone,
		"Broken": traceBroken, "NodeKilled": traceNodeKilled, "EdgeKilled": traceEdgeKilled, "Background": traceBackground, "CollectorsBad": traceCollectorsBad,
		"Off": traceOff, "Ratio": traceRatio, "Stranger": traceStranger,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}

func tracePlain(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Usage: true}})
	l := shared(b, 1)
	l.tokens = map[string]string{"alice": "alices-token"}
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	a := w.want(200, ask{tag: "plain", header: h, token: "alices-token"})
	by := c.wantTree(trace, `
POST /v1/chat/completions ok
  admit granted
  dispatch p1
    node
      backend
`)
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

func traceClientGone(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	c := traced(t, &l)
	w := newWorld(t, l)
	h, running := c.parent()
	first := w.start(ask{tag: "first", header: h})
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	h, waiting := c.parent()
	second := w.queue(ask{tag: "second", header: h}, 1)
	second.leave()
	w.awaitPending(0)
	first.leave()
	w.awaitIdle()
	c.wantTree(running, `
POST /v1/chat/completions canceled canceled
  admit granted
  dispatch p1
    node canceled
      backend canceled
`)
	by := c.wantTree(waiting, `
POST /v1/chat/completions canceled canceled
  admit queued
  wait canceled
`)
	root := by[chatRoot]
	if _, ok := root.Event("client left"); !ok {
		t.Error("it does not show that the client left")
	}
}

func traceBroken(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Tokens: 9, Drop: backend.AfterTokens, At: 2}})
	l := shared(b, 1)
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	s := w.open(ask{tag: "broken", header: h})
	if _, clean := s.rest(); clean {
		t.Error("the stream ended in order")
	}
	by := c.wantTree(trace, `
POST /v1/chat/completions backend_error provider_error!
  admit granted
  dispatch p1 backend_broke!
    node backend_broke!
      backend backend_broke!
`)
	wantAttrs(t, by[chatRoot], map[string]string{"iop.broken_off": "true", "http.response.status_code": "200"})
}

func traceNodeKilled(t *testing.T) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	c := traced(t, &l)
	w := newWorld(t, l)
	h, trace := c.parent()
	f := w.start(ask{tag: "killed", header: h})
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	w.nodes["n1"].kill()
	a := f.wait(t)
	a.want(t, 502)
	c.wantTree(trace, `
POST /v1/chat/completions backend_error provider_error!
  admit granted
  dispatch p1 link_lost!
`)
}

// traceEdgeKilled: what was recorded and not exported is lost, and nothing else.
func traceEdgeKilled(t *testing.T) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.throttled, l.grace = true, 0
	c := traced(t, &l)
	w := newWorld(t, l)
	h, lost := c.parent()
	f := w.start(ask{tag: "lost", header: h})
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	w.edge.kill()
	<-f.done
	w.restartEdge()
	w.awaitLink("n1")
	b.LetAll()
	h, trace := c.parent()
	w.want(200, ask{tag: "next", header: h})
	c.wantTree(trace, `
POST /v1/chat/completions ok
  admit granted
  dispatch p1
    node
      backend
`)
	if tree := otlp.Tree(c.edge.Spans(), lost, line); strings.Contains(tree, chatRoot) {
		t.Errorf("the killed edge has told the end of\n%s", tree)
	}
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

// traceCollectorsBad: collectors that hang, refuse or are gone change nothing for anybody, and are told of in the log
// once and not for each request.
func traceCollectorsBad(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 8)
	l.log = "info"
	c := traced(t, &l)
	w := newWorld(t, l)
	c.edge.Set(otlp.Hangs)
	c.nodes.Set(otlp.Refuses)
	for i := range 100 {
		w.want(200, ask{tag: fmt.Sprint("r", i)})
	}
	await(t, "both were asked", func() bool { return c.edge.Asked() > 0 && c.nodes.Asked() > 0 })
	await(t, "the node says that spans are lost", func() bool { return w.nodes["n1"].says("spans are lost") })
	for i := range 20 {
		w.want(200, ask{tag: fmt.Sprint("s", i), stream: true})
	}
	if n := strings.Count(w.nodes["n1"].out.String(), "spans are lost"); n != 1 {
		t.Errorf("%d complaints", n)
	}
	c.nodes.Set(otlp.Takes)
	h, trace := c.parent()
	w.want(200, ask{tag: "well", header: h})
	await(t, "the node's collector is in use again", func() bool {
		return strings.Contains(otlp.Tree(c.nodes.Spans(), trace, line), "backend")
	})
	w.awaitIdle()
}

// traceOff: a client's trace context goes to the backend as it came, also through a node that records.
func traceOff(t *testing.T) {
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	for _, parent := range []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "of the client"} {
		w.want(200, ask{tag: parent, header: http.Header{"Traceparent": {parent}, "Tracestate": {"a=1"}}})
		if r, _ := b.Run(parent); r.Header.Get("Traceparent") != parent || r.Header.Get("Tracestate") != "a=1" {
			t.Errorf("%q arrives as %q", parent, r.Header.Get("Traceparent"))
		}
	}
}

// traceRatio: with a ratio of 0 only what a caller has decided is recorded, and the backend is told so.
func traceRatio(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	c := traced(t, &l)
	l.edge["traces"].(map[string]any)["sample_ratio"] = 0
	w := newWorld(t, l)
	w.want(200, ask{tag: "none"})
	const not = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	w.want(200, ask{tag: "not", header: http.Header{"Traceparent": {not}}})
	w.want(200, ask{tag: "odd", header: http.Header{"Traceparent": {"odd"}, "Tracestate": {"a=1"}}})
	h, trace := c.parent()
	w.want(200, ask{tag: "yes", header: h})
	c.wantTree(trace, `
POST /v1/chat/completions ok
  admit granted
  dispatch p1
    node
      backend
`)
	for _, s := range c.all() {
		if s.Trace != trace {
			t.Errorf("recorded: %+v", s)
		}
	}
	none, _ := b.Run("none")
	if p, ok := spans.Parse(none.Header.Get("Traceparent")); !ok || p.Sampled() {
		t.Errorf("the backend is told %q", none.Header.Get("Traceparent"))
	}
	if r, _ := b.Run("not"); r.Header.Get("Traceparent") != not {
		t.Errorf("a caller's decision arrives as %q", r.Header.Get("Traceparent"))
	}
	if r, _ := b.Run("odd"); r.Header.Get("Traceparent") == "odd" || r.Header.Get("Tracestate") != "" {
		t.Errorf("what is no trace context arrives as %q, %q", r.Header.Get("Traceparent"), r.Header.Get("Tracestate"))
	}
}

// Who has no key does not decide that he is recorded, however small the ratio.
func traceStranger(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.tokens = map[string]string{"alice": "alices-token"}
	c := traced(t, &l)
	l.edge["traces"].(map[string]any)["sample_ratio"] = 0
	w := newWorld(t, l)
	h, stranger := c.parent()
	w.want(401, ask{tag: "stranger", header: h, token: "guessed"})
	h, trace := c.parent()
	w.want(200, ask{tag: "friend", header: h, token: "alices-token"})
	c.wantTree(trace, `
POST /v1/chat/completions ok
  admit granted
  dispatch p1
    node
      backend
`)
	if tree := otlp.Tree(c.all(), stranger, line); tree != "" {
		t.Errorf("recorded of a stranger:\n%s", tree)
	}
}
