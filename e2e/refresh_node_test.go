package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestRefreshReachesAnOfflineNode when it comes back, before it is ready: it never works with an older revision, and what
// was refused without it is served by it, under its new name and up to its new capacity.
func TestRefreshReachesAnOfflineNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.grace = time.Millisecond
	w, side := newBusyWorld(t, l, "n2")
	terminate(t, w.nodes["n1"])
	w.nodes["n1"].code(t)
	await(t, "n1 is offline", func() bool { return !w.node("n1").Connected })
	var r refreshReport
	for i := range 3 { // only the newest matters
		r = w.apply(func(l *layout) {
			l.providers[0].capacity = i + 1
			l.edits["nodes[0].providers[0].models[0]"] = fmt.Sprint("served/", i)
			l.edits["models[0].providers.p1"] = fmt.Sprint("served/", i)
			for m := range 2 {
				l.edits[fmt.Sprintf("models[%d].providers.p1", m+1)] = fmt.Sprint("served/", i)
			}
		})
		if !slices.Equal(r.PendingNodes, []string{"n1"}) || !slices.Equal(r.PushedNodes, []string{"n2"}) {
			t.Errorf("pushed to %v, pending %v", r.PushedNodes, r.PendingNodes)
		}
	}
	n1 := w.startNode("n1")
	w.awaitLink("n1")
	var flights []*flight
	for i := range 3 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i)}))
	}
	await(t, "three run", func() bool { return b.Stats().Held == 3 })
	if run, _ := b.Run("r1"); run.Model != "served/2" {
		t.Errorf("served as %q", run.Model)
	}
	if got := revisionsOf(n1); !slices.Equal(got, []string{fmt.Sprint(r.Revision)}) {
		t.Errorf("n1 was configured with the revisions %v, want %d alone", got, r.Revision)
	}
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// revisionsOf are the revisions that a node says it was configured with.
func revisionsOf(p *process) []string {
	var out []string
	for line := range strings.Lines(p.out.String()) {
		if strings.Contains(line, "msg=configured") {
			out = append(out, pairs(line)["revision"])
		}
	}
	return out
}

// TestRefreshReachesAPendingNodeBeforeItIsReady: the answer to its registration, with the old revision, is on its way
// when the new one is applied. The link becomes ready with the new one: four waiters go at once, and none is refused.
func TestRefreshReachesAPendingNodeBeforeItIsReady(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.throttled, l.grace, l.heartbeat = true, time.Millisecond, 20*time.Second
	w, side := newBusyWorld(t, l, "n2")
	for round := range rounds(3, 30) {
		terminate(t, w.nodes["n1"])
		w.nodes["n1"].code(t)
		await(t, "n1 is offline", func() bool { return !w.node("n1").Connected })
		w.line.HoldAnswerTo(nodeToken("n1"))
		n1 := w.startNode("n1")
		await(t, "the link is pending", func() bool {
			links := w.node("n1").Links
			return len(links) == 1 && links[0].State == "pending"
		})
		var flights []*flight
		for i := range 4 {
			flights = append(flights, w.queue(ask{tag: fmt.Sprint("round", round, "-", i), stream: i%2 == 0}, i+1))
		}
		before := w.status().Revision
		r := w.apply(func(l *layout) { l.providers[0].capacity = 4 })
		if !slices.Equal(r.PendingNodes, []string{"n1"}) || !slices.Equal(r.PushedNodes, []string{"n2"}) {
			t.Errorf("pushed to %v, pending %v", r.PushedNodes, r.PendingNodes)
		}
		if p := w.provider("p1"); p.Connected || w.pending() != 4 {
			t.Errorf("before the node has answered: %+v", p)
		}
		w.line.Pass()
		await(t, "four run", func() bool { return b.Stats().Held == 4 })
		if got := revisionsOf(n1); !slices.Equal(got, []string{fmt.Sprint(before), fmt.Sprint(r.Revision)}) {
			t.Errorf("n1 was configured with the revisions %v, want %d, %d", got, before, r.Revision)
		}
		b.LetAll()
		for _, f := range flights {
			a := f.wait(t)
			a.want(t, 200)
		}
		b.HoldAgain()
		await(t, "nothing runs", func() bool { return w.provider("p1").InFlight == 0 })
		w.apply(func(l *layout) { l.providers[0].capacity = 1 })
	}
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("backend %+v", s)
	}
}

// TestRefreshWithASlowNode: a node that stands still is named in the report after a bounded time and holds up nobody
// else. What was granted to it under the new configuration waits until it has that, and meets what it needs there.
func TestRefreshWithASlowNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.heartbeat = 20 * time.Second
	w, side := newBusyWorld(t, l, "n2")
	flights := []*flight{w.start(ask{tag: "r0"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	for i := 1; i <= 3; i++ {
		flights = append(flights, w.queue(ask{tag: fmt.Sprint("r", i), stream: i%2 == 0}, i))
	}
	freeze(t, w.nodes["n1"])
	r := w.apply(func(l *layout) {
		l.providers[0].capacity = 3
		l.edits["nodes[0].providers[0].models[0]"] = "served/other"
		for m := range 3 {
			l.edits[fmt.Sprintf("models[%d].providers.p1", m)] = "served/other"
		}
	})
	if !slices.Equal(r.PendingNodes, []string{"n1"}) || !slices.Equal(r.PushedNodes, []string{"n2"}) {
		t.Errorf("pushed to %v, pending %v", r.PushedNodes, r.PendingNodes)
	}
	side.awaitAnswers(5)
	if n := w.pending(); n != 1 || b.Stats().Total != 1 {
		t.Errorf("%d wait, %d runs, want two granted and still on their way", n, b.Stats().Total)
	}
	thaw(t, w.nodes["n1"])
	await(t, "three run", func() bool { return b.Stats().Held == 3 })
	for _, tag := range []string{"r1", "r2"} {
		if run, _ := b.Run(tag); run.Model != "served/other" {
			t.Errorf("%s is served as %q", tag, run.Model)
		}
	}
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	r = w.apply(func(l *layout) { l.providers[0].priority = 9 })
	if !slices.Equal(r.PushedNodes, []string{"n1", "n2"}) {
		t.Errorf("pushed to %v, pending %v", r.PushedNodes, r.PendingNodes)
	}
	for _, p := range w.nodes {
		if p.says("has no adapter") || p.says("misconfigured") {
			t.Error("a dispatch met an adapter that was not there")
		}
	}
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 || s.Total != 4 {
		t.Errorf("backend %+v", s)
	}
}
