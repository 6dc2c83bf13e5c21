package e2e

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/e2e/otlp"
	"iop/proto/spans"
)

// traceOff: a client's trace context goes to the backend as it came.
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
	c.wantTree(trace, straight)
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
	c.wantTree(trace, straight)
	if tree := otlp.Tree(c.all(), stranger, line); tree != "" {
		t.Errorf("recorded of a stranger:\n%s", tree)
	}
}

// A client that asks to be recorded with every request, as anybody may, fills no collector: what a second allows is recorded.
// His trace goes on to the backend in any case.
func traceAskers(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	c := traced(t, &l)
	keys := l.edge["traces"].(map[string]any)
	keys["sample_ratio"], keys["client_sampled_per_second"] = 0, 2
	w := newWorld(t, l)
	began, recorded := time.Now(), 0
	for i := range 40 {
		h, trace := c.parent()
		w.want(200, ask{tag: fmt.Sprint(i), header: h})
		r, _ := b.Run(fmt.Sprint(i))
		p, _ := spans.Parse(r.Header.Get("Traceparent"))
		if hex.EncodeToString(p.Trace[:]) != trace || r.Header.Get("Tracestate") != "vendor=1" {
			t.Fatalf("trace %s arrives as %q %q", trace, r.Header.Get("Traceparent"), r.Header.Get("Tracestate"))
		}
		if p.Sampled() {
			recorded++
			c.wantTree(trace, straight)
		}
	}
	if most := 2 + int(2*time.Since(began).Seconds()); recorded < 2 || recorded > most {
		t.Errorf("%d of 40 are recorded, want 2 at least and %d at most", recorded, most)
	}
	roots := 0
	for _, s := range c.edge.Spans() {
		if s.Name == chatRoot {
			roots++
		}
	}
	if roots != recorded {
		t.Errorf("%d are recorded, the backend heard of %d", roots, recorded)
	}
}

// An edge without traces is no way to have a node record what its own key does not allow; nor does the edge's bound take
// anything from what the edge has decided.
func traceAskersPastEdge(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	c := traced(t, &l)
	l.edge = nil
	keys := l.node["traces"].(map[string]any)
	keys["sample_ratio"], keys["client_sampled_per_second"] = 0, 0
	w := newWorld(t, l)
	for i := range 5 {
		h, trace := c.parent()
		w.want(200, ask{tag: fmt.Sprint(i), header: h})
		r, _ := b.Run(fmt.Sprint(i))
		if p, ok := spans.Parse(r.Header.Get("Traceparent")); !ok || p.Sampled() || hex.EncodeToString(p.Trace[:]) != trace {
			t.Errorf("trace %s arrives as %q", trace, r.Header.Get("Traceparent"))
		}
	}
	terminate(t, w.nodes["n1"])
	if code := w.nodes["n1"].code(t); code != 0 {
		t.Errorf("the node ends with %d", code)
	}
	if got := c.all(); len(got) > 0 {
		t.Errorf("recorded: %+v", got)
	}
}
