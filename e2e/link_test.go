package e2e

import (
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/e2e/cut"
)

// TestFrozenNodeIsFenced: a node that stands still (no close ever arrives) is fenced after its missed heartbeats. A
// second process of the node takes over as the next generation; the thawed one can't touch it.
func TestFrozenNodeIsFenced(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 3, Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 2)
	l.heartbeat, l.grace = 300*time.Millisecond, time.Millisecond
	w := newWorld(t, l)
	first := w.link("n1")
	s := w.open(ask{tag: "old"})
	s.next()
	old := w.nodes["n1"]
	freeze(t, old)
	await(t, "the frozen node is fenced", func() bool { return !w.node("n1").Connected })
	all, clean := s.rest()
	wantBroken(t, all, clean)
	w.awaitIdle()

	w.startNode("n1")
	if g := w.awaitLink("n1"); g != first+1 {
		t.Errorf("generation %d after %d", g, first)
	}
	s2 := w.open(ask{tag: "new"})
	s2.next()
	lease := w.awaitLeases(1)[0]
	thaw(t, old)
	await(t, "the thawed node has ended its run", func() bool {
		r, _ := b.Run("old")
		return r.End == backend.Aborted
	})
	// The thawed process tries to come back and is refused as long as the new one lives; its late frames and closes
	// change nothing.
	await(t, "the thawed node is told that it is a duplicate", func() bool { return old.says("duplicate") })
	if l := w.leases(); len(l) != 1 || l[0].ID != lease.ID || l[0].State != "held" {
		t.Errorf("leases %+v, want %+v alone", l, lease)
	}
	if g := w.link("n1"); g != first+1 {
		t.Errorf("generation %d, want %d", g, first+1)
	}
	b.LetAll()
	if _, clean := s2.rest(); !clean {
		t.Error("the new run did not end cleanly")
	}
	w.awaitIdle()
	w.grants = 2
	terminate(t, old)
	old.code(t)
	if g := w.link("n1"); g != first+1 {
		t.Errorf("the end of the old process changed the generation to %d", g)
	}
}

// TestPendingNodeIsNoCandidate: an accepted node that is not ready gets no dispatch; its ready wakes a stranded waiter
// once.
func TestPendingNodeIsNoCandidate(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1})
	l := shared(b, 1)
	l.throttled, l.grace, l.heartbeat = true, time.Millisecond, 20*time.Second
	w := newEdgeOnly(t, l)
	w.line.HoldAnswerTo(nodeToken("n1"))
	w.startNode("n1")
	await(t, "the link is pending", func() bool {
		n := w.node("n1")
		return len(n.Links) == 1 && n.Links[0].State == "pending"
	})
	if p := w.provider("p1"); p.Connected || p.Status == "available" {
		t.Errorf("provider %+v", p)
	}
	f := w.queue(ask{tag: "stranded"}, 1)
	second := w.queue(ask{tag: "second"}, 2)
	if c := w.waiters()[0].Candidates; len(c) != 1 || c[0].Dispatchable || c[0].Reason == "" {
		t.Errorf("candidates %+v", c)
	}
	if n := b.Stats().Total; n != 0 {
		t.Errorf("%d runs at a node that is not ready", n)
	}
	w.line.Pass()
	for _, f := range []*flight{f, second} {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs for 2 requests", n)
	}
	w.grants = 2
}

// TestDuplicateNode: a second process with the name of a living node is refused; its end changes nothing.
func TestDuplicateNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	w := newWorld(t, shared(b, 1))
	g := w.link("n1")
	s := w.open(ask{tag: "running"})
	s.next()
	lease := w.awaitLeases(1)[0]
	twin := w.spawnNode("n1", nodeToken("n1"))
	await(t, "the twin is told that it is a duplicate", func() bool { return twin.says("duplicate") })
	same := func(when string) {
		t.Helper()
		if n := w.node("n1"); !n.Connected || len(n.Links) != 1 || n.Links[0].Generation != g {
			t.Errorf("%s: node %+v, want generation %d", when, n, g)
		}
		if l := w.leases(); len(l) != 1 || l[0].ID != lease.ID {
			t.Errorf("%s: leases %+v", when, l)
		}
	}
	same("with the twin")
	twin.kill()
	same("without the twin")
	b.LetAll()
	if _, clean := s.rest(); !clean {
		t.Error("the run did not end cleanly")
	}
	w.awaitIdle()
	w.grants = 1
}

// TestHalfDeadLinkIsSuperseded: the edge believes in a link whose node is long dead. The new process gets its place at
// once, long before a heartbeat is missed; the old link's late close changes nothing.
func TestHalfDeadLinkIsSuperseded(t *testing.T) {
	t.Parallel()
	halfDead(t, time.Second, 100)
}

// TestHalfDeadLinkWithSlowHeartbeats: the old link's ping is not waited for longer than the newcomer waits.
func TestHalfDeadLinkWithSlowHeartbeats(t *testing.T) {
	t.Parallel()
	halfDead(t, 60*time.Second, 3)
}

func halfDead(t *testing.T, heartbeat time.Duration, missed int) {
	t.Helper()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.throttled, l.grace, l.heartbeat, l.missed = true, 60*time.Second, heartbeat, missed
	w := newWorld(t, l)
	g := w.link("n1")
	s := w.open(ask{tag: "old"})
	s.next()
	w.line.Hold(cut.Up, cut.Down)
	w.nodes["n1"].kill()
	if w.link("n1") != g {
		t.Error("the edge saw the end of the held link")
	}
	w.startNode("n1")
	await(t, "the node has its next generation", func() bool { return w.link("n1") == g+1 })
	all, clean := s.rest()
	wantBroken(t, all, clean)
	w.awaitIdle()
	s2 := w.open(ask{tag: "new"})
	s2.next()
	lease := w.awaitLeases(1)[0]
	w.line.CutHeld()
	await(t, "the old connections are gone", func() bool { _, held, _ := w.line.Connections(); return held == 0 })
	b.LetAll()
	if _, clean := s2.rest(); !clean {
		t.Error("the new run did not end cleanly")
	}
	w.awaitIdle()
	if got := w.link("n1"); got != g+1 {
		t.Errorf("generation %d after the late close, want %d", got, g+1)
	}
	if lease.Generation != g+1 {
		t.Errorf("the lease %+v is not of the new generation", lease)
	}
	w.grants = 2
}

// TestWrongToken: a node with a wrong token is told so, and is not let in.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newEdgeOnly(t, shared(b, 1))
	p := w.spawnNode("n1", "a wrong one")
	await(t, "the node names its token as the cause", func() bool { return p.says("token") })
	stranger := w.spawnNode("n9", nodeToken("n9"))
	await(t, "the stranger is told that nobody knows it", func() bool { return stranger.says("n9") && stranger.says("unknown") })
	if n := w.node("n1"); n.Connected || len(n.Links) != 0 {
		t.Errorf("node %+v", n)
	}
	for _, log := range []string{p.out.String(), w.edge.out.String()} {
		if containsAny(log, "a wrong one") {
			t.Error("a token is in the log")
		}
	}
	p.kill()
	w.startNode("n1")
	w.awaitLink("n1")
	w.want(200, ask{})
	w.awaitIdle()
}
