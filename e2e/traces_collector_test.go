package e2e

import (
	"fmt"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/otlp"
)

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
