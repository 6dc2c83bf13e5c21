package e2e

import (
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/e2e/cut"
)

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// TestSlotIsGivenOnOnlyAfterTheNodeConfirms: a client that left has freed its slot only when the node says that the
// backend has stopped; the wait for that is bounded by fence_timeout_ms.
func TestSlotIsGivenOnOnlyAfterTheNodeConfirms(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	other := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.providers = append(l.providers, provider{id: "p2", node: "n2", url: other.URL()})
	l.models["other"] = []string{"p2"}
	l.heartbeat, l.fence = 20*time.Second, 20*time.Second
	w := newWorld(t, l)
	s := w.open(ask{tag: "left"})
	s.next()
	lease := w.awaitLeases(1)[0]
	freeze(t, w.nodes["n1"])
	next := w.queue(ask{tag: "next"}, 1)
	s.leave()
	for range 20 { // far more than the edge needs to notice that the client left
		w.want(200, ask{model: "other", tag: "passer-by"})
	}
	if got := w.awaitLeases(1); got[0].ID != lease.ID || w.pending() != 1 {
		t.Errorf("the slot was given on while its node stood still: %+v", got)
	}
	thaw(t, w.nodes["n1"])
	await(t, "the next has begun", func() bool { return b.Stats().Total == 2 })
	b.LetAll()
	a := next.wait(t)
	a.want(t, 200)
	w.awaitIdle()
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("backend %+v", s)
	}
}

// TestUnconfirmedCancelIsBounded: a node that never confirms holds the slot for fence_timeout_ms, not for ever.
func TestUnconfirmedCancelIsBounded(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.heartbeat, l.fence, l.grace = 60*time.Second, 500*time.Millisecond, time.Millisecond
	w := newWorld(t, l)
	s := w.open(ask{tag: "left"})
	s.next()
	freeze(t, w.nodes["n1"])
	s.leave()
	w.awaitIdle()
	thaw(t, w.nodes["n1"])
	w.awaitLink("n1")
	await(t, "the node has left its backend", func() bool { return b.Stats().Aborted == 1 }) // else its gate refuses, rightly
	b.LetAll()
	await(t, "a new request is served", func() bool {
		a := w.ask(ask{tag: "next"})
		return a.status == 200
	})
	w.awaitIdle()
}

// TestLinkCutInMidStream: the connections between node and edge break while both live. The client sees a broken stream,
// the node cancels what it ran, comes back as the next generation and works.
func TestLinkCutInMidStream(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	l := shared(b, 1)
	l.throttled, l.grace = true, time.Millisecond
	w := newWorld(t, l)
	g := w.link("n1")
	for i := range 3 {
		s := w.open(ask{tag: "cut"})
		s.next()
		w.line.Cut()
		all, clean := s.rest()
		wantBroken(t, all, clean)
		await(t, "the node has ended the run", func() bool { return b.Stats().Aborted == i+1 })
		await(t, "the node is back with a higher generation", func() bool { return w.link("n1") > g })
		g = w.link("n1")
		w.awaitIdle()
	}
	b.LetAll()
	w.want(200, ask{tag: "after"})
	w.awaitIdle()
	w.grants = 4
}

// TestSlowLinkWorks: a link with a delay on every piece carries streams as they are.
func TestSlowLinkWorks(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Tokens: 10}})
	l := shared(b, 2)
	l.throttled = true
	w := newWorld(t, l)
	w.line.Delay(15 * time.Millisecond)
	a := w.want(200, ask{tag: "slow", stream: true})
	if a.text() != " 1 2 3 4 5 6 7 8 9 10" {
		t.Errorf("got %q", a.text())
	}
	w.line.Pass()
	// Both directions stand still for a moment shorter than the missed heartbeats: nothing is lost.
	b.Set(backend.Plan{Tokens: 10, Hold: backend.AfterTokens, At: 5})
	s := w.open(ask{tag: "paused"})
	s.next()
	w.line.Hold(cut.Up, cut.Down)
	b.LetAll()
	w.line.Pass()
	if all, clean := s.rest(); !clean || len(all) != 11 {
		t.Errorf("clean %v, %d frames", clean, len(all))
	}
	w.awaitIdle()
}
