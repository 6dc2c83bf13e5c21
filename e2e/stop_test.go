package e2e

import (
	"fmt"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestGracefulRestart: an edge stopped in order leaves no session, lease or waiter; after the restart nodes find it by
// themselves and work goes on.
func TestGracefulRestart(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2})
	l := shared(b, 2)
	l.throttled = true
	w := newWorld(t, l)
	for round := range 3 {
		g := w.awaitLink("n1")
		w.want(200, ask{tag: fmt.Sprint("round", round)})
		w.awaitIdle()
		terminate(t, w.edge.process)
		if code := w.edge.code(t); code != 0 {
			t.Errorf("edged ended with code %d", code)
		}
		if m := inspect(t, w.dataDir()); len(m.Snapshot().Sessions) != 0 || len(m.Leases()) != 0 {
			t.Errorf("left in the log: %d sessions, %d leases", len(m.Snapshot().Sessions), len(m.Leases()))
		}
		if !w.nodes["n1"].running() {
			t.Fatal("the node ended with its edge")
		}
		w.restartEdge()
		await(t, "the node is back with its next generation", func() bool { return w.link("n1") == g+1 })
	}
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
	w.grants = 4
}

// TestSecondSignalStopsAtOnce: one signal waits for what runs, a second doesn't; the log stays sound.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.throttled, l.stop = true, time.Minute
	w := newWorld(t, l)
	s := w.open(ask{tag: "running"})
	s.next()
	terminate(t, w.edge.process)
	w.awaitStopping()
	terminate(t, w.edge.process)
	if code := w.edge.code(t); code != 1 {
		t.Errorf("edged ended with code %d, want 1", code)
	}
	if _, clean := s.rest(); clean {
		t.Error("a part of a stream ended cleanly")
	}
	inspect(t, w.dataDir())
	w.restartEdge()
	w.awaitLink("n1")
	b.LetAll()
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
}

// TestGracefulStopIsBounded: a run that never ends does not hold the stop up for ever.
func TestGracefulStopIsBounded(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.stop = 300 * time.Millisecond
	w := newWorld(t, l)
	s := w.open(ask{tag: "endless"})
	s.next()
	terminate(t, w.edge.process)
	if code := w.edge.code(t); code != 0 {
		t.Errorf("edged ended with code %d", code)
	}
	all, clean := s.rest()
	if clean {
		t.Errorf("a part of a stream ended cleanly: %q", all)
	}
	await(t, "the backend sees the abort", func() bool { return b.Stats().Aborted == 1 })
	if m := inspect(t, w.dataDir()); len(m.Leases()) != 0 {
		t.Errorf("%d leases are left", len(m.Leases()))
	}
}

// TestFlappingNode: a node that dies and comes back under load: ends of the old life never count for the new one, and
// the backend gets no more than its capacity.
func TestFlappingNode(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Tokens: 4, Pace: time.Millisecond}})
	l := shared(b, 3)
	l.grace = 30 * time.Second
	w := newWorld(t, l)
	crowd := newCrowd(w, r.Uint64(), 8)
	for round := range rounds(8, 60) {
		g := w.awaitLink("n1")
		answered := crowd.answered.Load()
		await(t, "clients get answers", func() bool { return crowd.answered.Load() >= answered+10 })
		if p := w.provider("p1"); p.InFlight < 0 || p.InFlight > 3 {
			t.Errorf("in flight: %d", p.InFlight)
		}
		w.replaceNode("n1", round%2 == 0)
		await(t, "the node is back with its next generation", func() bool { return w.link("n1") > g })
	}
	crowd.stop()
	w.awaitIdle()
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("the backend got more than its capacity: %+v", s)
	}
}
