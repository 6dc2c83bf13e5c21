package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestRefreshWithoutAChange keeps the revision and tells no node anything; so does one that only writes the same in
// another way.
func TestRefreshWithoutAChange(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 2), "n1")
	before := w.status().Revision
	configured := func() int { return strings.Count(w.nodes["n1"].out.String(), "msg=configured") }
	times := configured()
	for name, change := range map[string]func(*layout){
		"the same file":    func(*layout) {},
		"a stated default": func(l *layout) { l.edits["nodes[0].alias"] = "" },
		"an absent key":    func(l *layout) { l.edits["models[0].generation"] = map[string]any{} },
	} {
		for _, query := range []string{"", "?dry_run=true", "?live_only=true", fmt.Sprint("?expected_revision=", before)} {
			r := w.refresh(200, "no_change", query, change)
			if r.Revision != before || len(r.PushedNodes) != 0 || len(r.ChangedPaths) != 0 || r.WaitersAffected != 0 {
				t.Errorf("%s, %q: %s", name, query, r.raw)
			}
		}
	}
	code, body := w.post("", nil) // the file on disk
	if r := parseReport(t, body); code != 200 || r.Result != "no_change" || r.File == "" {
		t.Errorf("the file on disk: %d %s", code, body)
	}
	w.iopctl(0, "refresh")
	side.awaitAnswers(5)
	if w.status().Revision != before || configured() != times {
		t.Errorf("revision %d after %d; the node was configured %d times, before %d", w.status().Revision, before, configured(), times)
	}
	// The next real one is the next revision, and the node hears of it.
	w.apply(func(l *layout) { l.providers[0].capacity = 3 })
	if configured() != times+1 {
		t.Errorf("the node was configured %d times, before the change %d", configured(), times)
	}
	side.end()
}

// TestRefreshTwoAtOnce: of two refreshes that saw the same revision one wins, and the other is told the winner's.
func TestRefreshTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 2), "n1")
	for round := range rounds(15, 200) {
		revision := w.status().Revision
		query := fmt.Sprint("?expected_revision=", revision)
		var codes [2]int
		var bodies [2][]byte
		var both sync.WaitGroup
		for i := range 2 {
			l := w.with(func(l *layout) { l.providers[0].capacity = 3 + 2*round + i })
			file := w.file(&l)
			both.Go(func() { codes[i], bodies[i] = w.post(query, file) })
		}
		both.Wait()
		winner := slices.Index(codes[:], 200)
		if winner < 0 || codes[1-winner] != 409 {
			t.Fatalf("round %d: statuses %v: %s %s", round, codes, bodies[0], bodies[1])
		}
		won, lost := parseReport(t, bodies[winner]), parseReport(t, bodies[1-winner])
		if won.Result != "applied" || won.Revision != revision+1 || lost.Result != "conflict" || lost.Revision != revision+1 {
			t.Fatalf("round %d: %s %s", round, won.raw, lost.raw)
		}
		if c := *w.provider("p1").Capacity; c != 3+2*round+winner {
			t.Errorf("round %d: capacity %d is not the winner's", round, c)
		}
	}
	late, said := w.refreshBy(4, func(l *layout) { l.providers[0].capacity = 1 }, "--expected-revision", "1")
	if late.Result != "conflict" || late.Revision != w.status().Revision {
		t.Errorf("a late one: %s", late.raw)
	}
	wantWords(t, "stderr", said, fmt.Sprint(late.Revision))
	side.end()
}

// TestRefreshTwoHundredInARow under load, of capacity, priority, models and what the backends serve, so that the node's
// registry is swapped each time: every request is answered whole, no slot is used above the largest capacity, no lease
// is left, and neither daemon keeps a goroutine or a connection of a former adapter.
func TestRefreshTwoHundredInARow(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4, Keep: -1, Default: backend.Plan{Tokens: 3, Pace: time.Millisecond}})
	l := shared(b, 4)
	l.log = "warn"
	l.providers = append(l.providers, provider{id: "demo", capacity: 2, demo: map[string]any{"words": 4, "word_interval_ms": 1, "first_token_ms": 1}})
	l.models["demo"] = []string{"demo"}
	w, side := newBusyWorld(t, l, "n1")
	load := newLoad(w, 6)
	load.awaitAnswers(20)
	resume := load.pause()
	goroutines, node := w.metric("go_goroutines"), w.nodes["n1"]
	files := openFiles(t, node)
	resume()
	const times = 200
	revision := w.status().Revision
	for i := range times {
		r := w.apply(func(l *layout) {
			l.providers[0].capacity = 1 + (i*3+3)%4
			l.providers[0].priority = i % 3
			delete(l.models, fmt.Sprint("brief-", i-1))
			l.models[fmt.Sprint("brief-", i)] = []string{"p1"}
			l.edits["nodes[0].providers[0].models[1]"] = fmt.Sprint("served/brief-", i)
			l.edits["nodes[0].providers[1].models[1]"] = fmt.Sprint("served/brief-", i) // the node builds its adapter anew
		})
		if !slices.Equal(r.PushedNodes, []string{"n1"}) {
			t.Errorf("refresh %d was confirmed by %v", i, r.PushedNodes)
		}
		if p := w.provider("p1"); *p.Capacity != 1+(i*3+3)%4 {
			t.Errorf("provider %+v", p)
		}
		if i%20 == 19 {
			load.awaitAnswers(3)
		}
		if t.Failed() {
			t.Fatalf("at refresh %d", i)
		}
	}
	if got := w.status().Revision; got != revision+times {
		t.Errorf("revision %d after %d and %d refreshes", got, revision, times)
	}
	resume = load.pause()
	await(t, "nothing is held", func() bool {
		return w.provider("p1").InFlight == 0 && w.provider("demo").InFlight == 0 && w.pending() == 0
	})
	await(t, "the edge has no goroutine more than before", func() bool { return w.metric("go_goroutines") <= goroutines+20 })
	await(t, "the node has no connection more than before", func() bool { return openFiles(t, node) <= files+20 })
	resume()
	load.end()
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 || s.Peak > 4 {
		t.Errorf("backend %+v", s)
	}
	t.Logf("%d answers during %d refreshes", load.answered.Load(), times)
	wantFewGoroutines(t, w, "n1")
}

// wantFewGoroutines ends a node with a look at its goroutines: one that starts anew has about as many.
func wantFewGoroutines(t *testing.T, w *world, node string) {
	t.Helper()
	count := func() int {
		p := w.nodes[node]
		quit(t, p)
		p.code(t)
		delete(w.nodes, node) // it ends as it was asked to, with code 2
		return strings.Count(p.out.String(), "\ngoroutine ")
	}
	refreshed := count()
	await(t, "the edge knows that the node is gone", func() bool { return w.link(node) == 0 })
	w.startNode(node)
	w.awaitLink(node)
	for i := range 20 {
		w.want(200, ask{tag: fmt.Sprint("after", i)})
	}
	w.awaitIdle()
	// A data connection more or less is no leak; one per refresh, or per ten of them, is.
	fresh := count()
	t.Logf("the node has %d goroutines after the refreshes, a fresh one %d", refreshed, fresh)
	if refreshed == 0 || refreshed > fresh+20 {
		t.Errorf("the node has %d goroutines after the refreshes, a fresh one %d", refreshed, fresh)
	}
}

// load is clients that ask for all models of p1 and demo again and again, never leave, and want every answer whole.
type load struct {
	w        *world
	turn     sync.RWMutex
	stopped  atomic.Bool
	answered atomic.Int64
	wait     sync.WaitGroup
}

func newLoad(w *world, clients int) *load {
	x := &load{w: w}
	address := w.edge.openai
	for i := range clients {
		x.wait.Go(func() {
			for n := 0; !x.stopped.Load(); n++ {
				x.turn.RLock()
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				a := call(ctx, address, ask{
					tag: fmt.Sprintf("load%d-%d", i, n), model: []string{"m", "ornith:35b", "ornith-fast", "demo"}[n%4], stream: n/4%2 == 0,
				})
				cancel()
				x.turn.RUnlock()
				if a.status != 200 || !a.clean || a.text() != " 1 2 3" && (n%4 != 3 || len(strings.Fields(a.text())) != 4) {
					w.t.Errorf("%s: status %d, clean %v, %v: %.300s", a.tag, a.status, a.clean, a.err, a.body)
					return
				}
				x.answered.Add(1)
			}
		})
	}
	w.t.Cleanup(x.end)
	return x
}

func (x *load) awaitAnswers(n int64) {
	x.w.t.Helper()
	from := x.answered.Load()
	await(x.w.t, "the clients get answers", func() bool { return x.answered.Load() >= from+n })
}

// pause stops all clients between two requests.
func (x *load) pause() (resume func()) {
	x.turn.Lock()
	resume = sync.OnceFunc(x.turn.Unlock)
	x.w.t.Cleanup(resume) // before end, if the test ends meanwhile
	return resume
}

func (x *load) end() { x.stopped.Store(true); x.wait.Wait() }
