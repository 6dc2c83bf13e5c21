package e2e

import (
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/otlp"
)

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
	c.wantTree(trace, straight)
	if tree := otlp.Tree(c.edge.Spans(), lost, line); strings.Contains(tree, chatRoot) {
		t.Errorf("the killed edge has told the end of\n%s", tree)
	}
}
