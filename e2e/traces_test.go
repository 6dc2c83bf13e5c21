package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

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

// straight is the tree of a chat that got its slot at once and ended well.
const straight = chatRoot + ` ok
  admit granted
  dispatch p1
    node
      backend
`

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
		"Off": traceOff, "Ratio": traceRatio, "Stranger": traceStranger, "Askers": traceAskers,
		"AskersPastEdge": traceAskersPastEdge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}
