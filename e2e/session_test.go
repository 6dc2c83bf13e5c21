package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/e2e/backend"
	"iop/edged"
	"iop/edged/adminapi"
)

// hosted is a world whose edge runs in the test's own process, so that the test can have its session ended.
type hosted struct {
	*world
	daemon *edged.Daemon
	stop   func() error
}

// newHosted starts such an edge, with the layout's nodes as processes.
func newHosted(t *testing.T, l layout) *hosted {
	t.Helper()
	w := &hosted{world: newEmptyWorld(t, l)}
	w.startHosted()
	for _, n := range w.layout.nodes() {
		w.startNode(n)
		w.awaitLink(n)
	}
	return w
}

func (w *hosted) startHosted() {
	t := w.t
	t.Helper()
	config, _, err := configs.ParseEdge(w.layout.edgeFile("edge-1", w.dataDir()), "edge.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.daemon, err = edged.New(edged.Options{Config: config, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.daemon.Run(ctx) }()
	w.stop = func() error { cancel(); return <-ended }
	select {
	case <-w.daemon.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	a := w.daemon.Addrs()
	w.edge = &edge{openai: a.OpenAI, node: a.Node, admin: a.Admin}
	t.Cleanup(func() { // before the world's own end, which looks at the data directory
		w.edge = nil
		if err := w.stop(); err != nil {
			t.Errorf("the edge: %v", err)
		}
		if !t.Failed() {
			w.checkData()
		}
	})
}

// endSession has the session ended and waits until the node has a ready link in the next one.
func (w *hosted) endSession() {
	w.t.Helper()
	before := w.link("n1")
	if err := w.daemon.EndSession(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	await(w.t, "the node is linked anew", func() bool {
		g := w.link("n1")
		return g > before
	})
}

// TestEndedSessionBreaksNothing: an edge's session is ended while 20 streams run and 20 requests wait, three times in a
// row. Every stream arrives whole, those that wait are served in their order and before one that came later, every lease
// goes back once, and nothing is left.
func TestEndedSessionBreaksNothing(t *testing.T) {
	t.Parallel()
	const size = 20
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: size, Default: plan})
	l := shared(b, size)
	l.grace = 10 * time.Second
	w := newHosted(t, l)
	want := mapped(slices.Concat(plan.Frames("/v1/chat/completions", served("p1"))...))
	var running, waiting []*flight
	for i := range size {
		running = append(running, w.start(ask{tag: fmt.Sprint("run", i), stream: true}))
	}
	await(t, "all streams run", func() bool { return b.Stats().Held == size })
	for i := range size {
		a := ask{tag: fmt.Sprintf("wait%02d", i), stream: i%2 == 0}
		if i%3 == 0 {
			a.key = a.tag
		}
		waiting = append(waiting, w.queue(a, i+1))
	}
	order := requests(w.waiters())
	for round := range 3 {
		w.endSession()
		await(t, "who waited waits again", func() bool {
			ws := w.waiters()
			return len(ws) == size && !slices.ContainsFunc(ws, func(x adminapi.Waiter) bool { return x.State == "detached" })
		})
		if got := requests(w.waiters()); !slices.Equal(got, order) {
			t.Fatalf("round %d: the order was %v, is %v", round, order, got)
		}
		if s := b.Stats(); s.Current != size || s.Violations != 0 {
			t.Fatalf("round %d: %d run at the backend, %d violations", round, s.Current, s.Violations)
		}
		for _, f := range running {
			if f.over() {
				t.Fatalf("round %d: %s has ended: %d %q %v", round, f.ask.tag, f.got.status, f.got.body, f.got.err)
			}
		}
	}
	later := w.queue(ask{tag: "later"}, size+1)
	for i := range size { // one by one, so that the order shows
		b.Let(1)
		await(t, "the next one runs", func() bool { return b.Stats().Total == size+i+1 })
	}
	var started []string
	for _, tag := range b.Tags() {
		if strings.HasPrefix(tag, "wait") {
			started = append(started, tag)
		}
	}
	if !slices.IsSorted(started) || len(started) != size {
		t.Errorf("served in the order %v", started)
	}
	b.LetAll()
	for _, f := range slices.Concat(running, waiting, []*flight{later}) {
		a := f.wait(t)
		a.want(t, 200)
		if f.ask.stream && string(a.body) != string(want) {
			t.Errorf("%s got %q, want %q", a.tag, a.body, want)
		}
	}
	w.awaitIdle()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
	w.grants = 2*size + 1
}
