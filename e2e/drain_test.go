package e2e

import (
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// TestDrainOfAProvider: what runs goes on, what comes goes elsewhere, what has nowhere else to go is told so; --wait ends when
// nothing runs any more; it outlives a restart of the edge, and undrain ends it.
func TestDrainOfAProvider(t *testing.T) {
	t.Parallel()
	b1, b2 := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}}), newBackend(t, backend.Options{Limit: 2})
	l := layout{
		providers: []provider{{id: "p1", url: b1.URL(), capacity: 2}, {id: "p2", node: "n2", url: b2.URL(), capacity: 2, priority: 10}},
		models:    map[string][]string{"m": {"p1", "p2"}, "only": {"p1"}},
		throttled: true,
	}
	w := newWorld(t, l)
	running := w.open(ask{tag: "running", model: "only"})
	running.next()
	wantWords(t, "drain", w.iopctl(0, "providers", "drain", "p1"), "provider p1 gets no new requests")
	await(t, "the node knows", func() bool { return w.nodes["n1"].says("drained by an operator") })
	if p := w.provider("p1"); p.Status != "draining" || !p.Draining || p.InFlight != 1 {
		t.Errorf("provider %+v", p)
	}
	for range 4 {
		if a := w.want(200, ask{model: "m"}); a.header.Get("x-iop-provider") != "p2" {
			t.Errorf("answered by %q", a.header.Get("x-iop-provider"))
		}
	}
	a := w.ask(ask{model: "only"})
	a.wantError(t, 503, "provider_unavailable")
	wantWords(t, "a wait that is too short", w.iopctl(6, "providers", "drain", "p1", "--wait", "--wait-timeout", "1ms"), "1 request still runs", "cure:")

	waited := make(chan string, 1)
	go func() { waited <- w.iopctl(0, "providers", "drain", "p1", "--wait") }()
	b1.LetAll()
	if _, clean := running.rest(); !clean {
		t.Error("the drained provider's run was cut off")
	}
	wantWords(t, "wait", <-waited, "nothing runs on it")

	terminate(t, w.edge.process)
	w.edge.code(t)
	w.restartEdge()
	w.awaitLink("n1")
	w.awaitLink("n2")
	if p := w.provider("p1"); p.Status != "draining" {
		t.Errorf("after a restart: %+v", p)
	}
	w.iopctl(0, "providers", "undrain", "p1")
	await(t, "the node knows that too", func() bool { return w.nodes["n1"].says("drained no more") })
	w.want(200, ask{model: "only"})
	w.awaitIdle()
}

// TestDrainOfANode, whose providers all get nothing new while it is drained; waiters go to the others.
func TestDrainOfANode(t *testing.T) {
	t.Parallel()
	b1, b2 := newBackend(t, backend.Options{Limit: 2}), newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: b1.URL()}, {id: "q1", url: b1.URL()}, {id: "p2", node: "n2", url: b2.URL(), priority: 10}},
		models:    map[string][]string{"m": {"p1", "q1", "p2"}, "only": {"p2"}},
	})
	w.iopctl(0, "nodes", "drain", "n1", "--wait")
	held := w.start(ask{tag: "held"})
	w.awaitLeases(1)
	waiting := w.queue(ask{tag: "waiting"}, 1)
	nodes := decodeAs[adminapi.NodeList](t, w.iopctl(0, "nodes", "list", "-o", "json")).Nodes
	if !nodes[0].Draining || nodes[1].Draining {
		t.Errorf("nodes %+v", nodes)
	}
	wantWords(t, "nodes list", w.iopctl(0, "nodes", "list", "-o", "wide"), "DRAINING", "yes")
	wantWords(t, "providers list", w.iopctl(0, "providers", "list"), "draining")
	why := w.iopctl(0, "queue", "list")
	if !strings.Contains(why, "p1 (draining)") || !strings.Contains(why, "q1 (draining)") || !strings.Contains(why, "p2 (full)") {
		t.Errorf("queue list:\n%s", why)
	}
	w.iopctl(0, "nodes", "undrain", "n1")
	a := waiting.wait(t)
	a.want(t, 200)
	if got := a.header.Get("x-iop-provider"); got != "p1" && got != "q1" {
		t.Errorf("answered by %q", got)
	}
	b2.LetAll()
	a = held.wait(t)
	a.want(t, 200)
	wantWords(t, "unknown", w.iopctl(1, "nodes", "drain", "nobody"), `no node "nobody"`, "cure:")
	wantWords(t, "show", w.iopctl(0, "providers", "show", "p1"), "p1 on node n1", "The backend says of itself:")
	w.awaitIdle()
}
