package e2e

import (
	"testing"
	"time"

	"iop/e2e/backend"
)

func endNodeSigkilled(t *testing.T) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	b.SetFor("headless", backend.Plan{Hold: backend.BeforeHead})
	l := shared(b, 2)
	l.grace, l.heartbeat = 1_000_000, 10_000_000_000 // the loss is seen by the close, not by a missed heartbeat
	w := newWorld(t, l)
	s := w.open(ask{tag: "streaming"})
	s.next()
	headless := w.start(ask{tag: "headless"})
	await(t, "both run", func() bool { return b.Stats().Current == 2 })
	w.nodes["n1"].kill()
	all, clean := s.rest()
	wantBroken(t, all, clean)
	a := headless.wait(t)
	a.wantError(t, 502, "provider_error")
	w.awaitIdle()
	if p := w.provider("p1"); p.Connected || p.Status != "unavailable" || p.Health != "offline" {
		t.Errorf("provider %+v", p)
	}
	w.grants = 2
}

// endNodeStopped: an orderly stop is noticed at once, without any heartbeat.
func endNodeStopped(t *testing.T) {
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.grace, l.heartbeat = 1_000_000, 60_000_000_000
	w := newWorld(t, l)
	w.want(200, ask{})
	terminate(t, w.nodes["n1"])
	await(t, "the node is offline", func() bool { return !w.node("n1").Connected })
	a := w.ask(ask{tag: "late"})
	a.wantError(t, 503, "provider_unavailable")
	if code := w.nodes["n1"].code(t); code != 0 {
		t.Errorf("noded ended with code %d", code)
	}
	w.awaitIdle()
	w.grants = 1
}

// endNodeStoppedWhileRunning: a node that stops while it runs something is no candidate from that moment on; a part of
// an answer never looks whole.
func endNodeStoppedWhileRunning(t *testing.T) {
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 5, Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 2)
	l.grace, l.heartbeat = 1_000_000, 60_000_000_000
	w := newWorld(t, l)
	s := w.open(ask{tag: "streaming"})
	s.next()
	terminate(t, w.nodes["n1"])
	awaitWithin(t, 10*time.Second, "the provider is out", func() bool { return w.provider("p1").Status != "available" })
	a := w.ask(ask{tag: "late"})
	a.wantError(t, 503, "provider_unavailable")
	b.LetAll()
	if all, clean := s.rest(); clean && (len(all) == 0 || all[len(all)-1] != "[DONE]") {
		t.Errorf("a part of a stream ended cleanly: %q", all)
	}
	if code := w.nodes["n1"].code(t); code != 0 {
		t.Errorf("noded ended with code %d", code)
	}
	await(t, "the node is offline", func() bool { return !w.node("n1").Connected })
	w.awaitIdle()
	w.grants = 1
}

// endEdgeStopped: nothing new is admitted, what runs is finished, nothing is left in the log.
func endEdgeStopped(t *testing.T) {
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Tokens: 5, Hold: backend.AfterTokens, At: 1}})
	w := newWorld(t, shared(b, 1))
	s := w.open(ask{tag: "streaming"})
	s.next()
	queued := w.queue(ask{tag: "queued"}, 1)
	terminate(t, w.edge.process)
	w.awaitStopping()
	late := call(t.Context(), w.edge.openai, ask{tag: "late"})
	if late.status != 0 {
		late.wantError(t, 503, late.code())
		late.wantRetry(t)
	}
	if !w.edge.running() {
		t.Error("the edge ended while a stream was running")
	}
	b.LetAll()
	if all, clean := s.rest(); !clean || all[len(all)-1] != "[DONE]" {
		t.Errorf("the running stream was not finished: clean %v, %q", clean, all)
	}
	a := queued.wait(t)
	if a.status != 200 && a.status != 503 {
		t.Errorf("the waiter was answered %d: %s %v", a.status, a.body, a.err)
	}
	if code := w.edge.code(t); code != 0 {
		t.Errorf("edged ended with code %d", code)
	}
	m := inspect(t, w.dataDir())
	if n := len(m.Leases()) + len(m.Waiters()); n != 0 {
		t.Errorf("%d leases and waiters are left in the log", n)
	}
	if n := len(m.Snapshot().Sessions); n != 0 {
		t.Errorf("%d sessions are left in the log", n)
	}
}

// awaitStopping waits until the edge says by /readyz, or by taking no connections, that it stops.
func (w *world) awaitStopping() {
	w.t.Helper()
	await(w.t, "the edge is not ready any more", func() bool {
		_, err := tryFetch(w.edge.openai, "/readyz")
		return err != nil
	})
}
