package e2e

import (
	"net"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestRestartWithANewFile: a restart with the same file leaves the revision alone; one with another file moves the
// cluster once, and what it no longer has ends.
func TestRestartWithANewFile(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.throttled = true
	w := newWorld(t, l)
	restart := func() {
		t.Helper()
		w.edge.kill()
		w.restartEdge()
		await(t, "the node is back", func() bool { return w.link("n1") != 0 })
	}
	first := w.status().Revision
	restart()
	if got := w.status().Revision; got != first {
		t.Errorf("revision %d after a restart with the same file, want %d", got, first)
	}
	w.layout.models = map[string][]string{"m": {"p1"}, "new": {"p1"}}
	w.layout.providers[0].capacity = 5
	restart()
	if got := w.status().Revision; got != first+1 {
		t.Errorf("revision %d after a restart with another file, want %d", got, first+1)
	}
	if p := w.provider("p1"); p.Capacity == nil || *p.Capacity != 5 {
		t.Errorf("provider %+v", p)
	}
	w.want(200, ask{model: "new"})
	a := w.ask(ask{model: "ornith-fast"})
	a.wantError(t, 404, "model_not_found")
	restart()
	if got := w.status().Revision; got != first+1 {
		t.Errorf("revision %d after one more restart, want %d", got, first+1)
	}
	w.awaitIdle()
}

// TestWaitersOfARemovedModelEnd: a restart whose file drops a model with detached waiters leaves nothing behind.
func TestWaitersOfARemovedModelEnd(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.throttled, l.reattach = true, 60*time.Second
	w := newWorld(t, l)
	w.start(ask{tag: "running"})
	w.awaitLeases(1)
	w.queue(ask{model: "ornith:35b", tag: "goes"}, 1)
	w.queue(ask{model: "ornith-fast", tag: "stays"}, 2)
	w.edge.kill()
	b.LetAll()
	w.layout.models = map[string][]string{"m": {"p1"}, "ornith-fast": {"p1"}}
	w.restartEdge()
	w.awaitLink("n1")
	if q := w.waiters(); len(q) != 1 || q[0].Model != "ornith-fast" || q[0].State != "detached" {
		t.Errorf("waiters %+v", q)
	}
	w.want(200, ask{model: "ornith-fast", tag: "stays"})
	w.awaitIdle()
}

// TestNodeBeforeEdge: a node that is started first, and knows of an edge that is not there, finds the other one.
func TestNodeBeforeEdge(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.throttled = true
	w := newEmptyWorld(t, l)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	file := w.write("node.yaml", nodeFile("n1", nodeToken("n1"), gone.Addr().String(), w.line.Address()))
	p := w.track(spawn(t, "noded n1", nil, program(t, "noded"), "--config", file))
	w.nodes["n1"] = p
	await(t, "the node says that it finds no edge", func() bool { return p.says("the link is down") })
	w.startEdge()
	w.awaitLink("n1")
	r := p.awaitReady(t)
	if r["node"] != "n1" || r["edges"] == "" {
		t.Errorf("ready line %q", p.out.line)
	}
	w.want(200, ask{})
	w.awaitIdle()
}

// TestFrozenEdge: an edge that stands still for longer than heartbeats may be missed. The node ends what it ran and comes
// back; waiters keep their place; the backend gets no more than its capacity.
func TestFrozenEdge(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.heartbeat, l.grace, l.timeout = 300*time.Millisecond, 30*time.Second, 60*time.Second
	w := newWorld(t, l)
	g := w.link("n1")
	s := w.open(ask{tag: "running"})
	s.next()
	waiting := w.queue(ask{tag: "waiting"}, 1)
	freeze(t, w.edge.process)
	await(t, "the node has given the run up", func() bool { return b.Stats().Aborted == 1 })
	b.LetAll()
	thaw(t, w.edge.process)
	all, clean := s.rest()
	wantBroken(t, all, clean)
	a := waiting.wait(t)
	a.want(t, 200)
	if got := w.awaitLink("n1"); got <= g {
		t.Errorf("generation %d, before %d", got, g)
	}
	w.awaitIdle()
	if s := b.Stats(); s.Violations != 0 || s.Total != 2 {
		t.Errorf("backend %+v", s)
	}
}
