package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestChaos: clients come and go while the edge and both nodes are killed, frozen, cut off and stopped in order, at
// random. In the end nothing is held, no backend ever had more than its capacity, and the log is sound.
func TestChaos(t *testing.T) {
	t.Parallel()
	r := dice(t)
	plan := backend.Plan{Tokens: 5, Pace: time.Millisecond}
	b1 := newBackend(t, backend.Options{Limit: 2, Default: plan})
	b2 := newBackend(t, backend.Options{Limit: 3, Default: plan, FailEvery: 11})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: b1.URL(), capacity: 2}, {id: "p2", node: "n2", url: b2.URL(), capacity: 3}},
		models:    map[string][]string{"m": {"p1"}, "ornith:35b": {"p1", "p2"}, "ornith-fast": {"p2"}},
		throttled: true, reattach: time.Second, heartbeat: 300 * time.Millisecond, fence: 2 * time.Second,
	})
	crowd := newCrowd(w, r.Uint64(), 12)
	for range rounds(15, 150) {
		answered := crowd.answered.Load()
		await(t, "clients get answers", func() bool { return crowd.answered.Load() >= answered+5 })
		node := []string{"n1", "n2"}[r.IntN(2)]
		what := r.IntN(6)
		t.Logf("fault %d of %s", what, node)
		switch what {
		case 0:
			w.edge.kill()
			inspect(t, w.dataDir())
			w.restartEdge()
			crowd.address.Store(&w.edge.openai)
		case 1, 2:
			w.replaceNode(node, what == 1)
		case 3:
			w.line.Cut()
		case 4:
			freeze(t, w.nodes[node])
			await(t, "the frozen node is fenced", func() bool { return w.link(node) == 0 })
			thaw(t, w.nodes[node])
		case 5:
			freeze(t, w.edge.process)
			time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond) // the fault itself
			thaw(t, w.edge.process)
		}
		for _, n := range []string{"n1", "n2"} {
			// Reconnects that have slowed down are not what this is about.
			if w.link(n) == 0 && r.IntN(2) == 0 {
				w.replaceNode(n, true)
			}
			w.awaitLink(n)
		}
	}
	crowd.stop()
	w.awaitPending(0)
	w.awaitIdle()
	for _, b := range []*backend.Backend{b1, b2} {
		await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
		if s := b.Stats(); s.Violations != 0 {
			t.Errorf("a backend got more than its capacity: %+v", s)
		}
	}
	t.Logf("%d answers, %d refusals or losses", crowd.answered.Load(), crowd.failed.Load())
}

// TestHundredsOfWaiters: 400 waiters of three models on one slot are served in the order of the queue, and each once;
// 100 that leave at the same time disturb nobody.
func TestHundredsOfWaiters(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.queue = 1000
	w := newWorld(t, l)
	models := []string{"m", "ornith:35b", "ornith-fast"}
	byRequest, stay := map[string]string{}, []*flight{}
	var leave []*flight
	for i := range 500 {
		f := w.start(ask{tag: fmt.Sprint("r", i), model: models[i%3], stream: i%4 == 0})
		if i%5 == 4 {
			leave = append(leave, f)
		} else {
			stay = append(stay, f)
		}
	}
	w.awaitPending(499)
	await(t, "the first runs", func() bool { return b.Stats().Held == 1 })
	for _, f := range leave {
		f.leave()
	}
	w.awaitPending(499 - len(leave) + b.Stats().Aborted)
	order := []string{}
	for _, l := range w.awaitLeases(1) {
		order = append(order, l.Request)
	}
	order = append(order, requests(w.waiters())...)
	seen := b.Stats().Total - 1
	b.LetAll()
	for _, f := range stay {
		a := f.wait(t)
		a.want(t, 200)
		byRequest[a.header.Get("x-request-id")] = a.tag
	}
	want := []string{}
	for _, id := range order {
		want = append(want, byRequest[id])
	}
	if got := b.Tags()[seen:]; !slices.Equal(got, want) {
		t.Errorf("order at the backend\n %v, order of the queue\n %v", got, want)
	}
	w.awaitIdle()
}

// TestOneKeyAtOnce: of many requests with the same key at the same time one runs; the others are told.
func TestOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 4))
	var flights []*flight
	for i := range 20 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i), key: "the-same"}))
	}
	await(t, "all but one are answered", func() bool {
		n := 0
		for _, f := range flights {
			if f.over() {
				n++
			}
		}
		return n == 19
	})
	b.LetAll()
	count := map[int]int{}
	for _, f := range flights {
		a := f.wait(t)
		count[a.status]++
		if a.status == 409 {
			a.wantError(t, 409, "in_progress_elsewhere")
		}
	}
	if count[200] != 1 || count[409] != 19 || b.Stats().Total != 1 {
		t.Errorf("answers %v, %d runs", count, b.Stats().Total)
	}
	w.awaitIdle()
}
