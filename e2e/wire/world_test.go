package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for a fact.
const patience = 20 * time.Second

// await waits for a fact.
func await(t testing.TB, fact string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", fact)
		}
	}
}

// hands is what a test's node does.
type hands struct {
	run       func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End
	configure func(ctx context.Context, revision uint64) error
}

func (h *hands) Configure(ctx context.Context, revision uint64, _ *nodepb.NodeConfigPayload) error {
	if h.configure != nil {
		return h.configure(ctx, revision)
	}
	return nil
}

func (h *hands) Run(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
	return h.run(ctx, r, a)
}

// started is something with Run that a test started.
type started struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func start(t testing.TB, run func(context.Context) error) *started {
	ctx, cancel := context.WithCancel(context.Background())
	s := &started{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = run(ctx)
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *started) stop(t testing.TB) {
	t.Helper()
	s.cancel()
	select {
	case <-s.done:
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	if s.err != nil {
		t.Error("it stopped with", s.err)
	}
}

// edge is the edge's end.
type edge struct {
	*started
	links   *nodelink.Links
	address string
	counts  *counts
}

func startEdge(t testing.TB, c *cluster, set func(*nodelink.Options)) *edge {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{address: listener.Addr().String(), counts: &counts{n: map[string]int{}}}
	o := nodelink.Options{
		Listener: listener, Commands: c, Catalog: c, Edge: edgeID, Logger: logger(t), Metrics: e.counts,
		HeartbeatInterval: 100 * time.Millisecond, HeartbeatMissed: 10, GoodbyeRetryAfter: 50 * time.Millisecond,
	}
	if set != nil {
		set(&o)
	}
	if e.links, err = nodelink.New(o); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.effects = e.links.Effects
	c.mu.Unlock()
	e.started = start(t, e.links.Run)
	return e
}

// counts are nodelink's Metrics.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(s string) {
	c.mu.Lock()
	c.n[s]++
	c.mu.Unlock()
}

func (c *counts) get(s string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[s]
}

func (c *counts) LinkUp(node string)           { c.add("up " + node) }
func (c *counts) LinkDown(node, reason string) { c.add("down " + node + " " + reason) }
func (c *counts) LinkRefused(code string)      { c.add("refused " + code) }
func (c *counts) FrameDropped(kind string)     { c.add("dropped " + kind) }

// node is the node's end.
type node struct {
	*started
	link   *edgelink.Link
	states *states
}

func startNode(t testing.TB, address string, id string, h edgelink.Hands, set func(*edgelink.Options)) *node {
	t.Helper()
	n := &node{states: &states{}}
	o := edgelink.Options{
		Address: address, NodeID: id, Token: token, Hands: h, Logger: logger(t),
		BackoffMin: 5 * time.Millisecond, BackoffMax: 50 * time.Millisecond, Observe: n.states.add,
	}
	if set != nil {
		set(&o)
	}
	var err error
	if n.link, err = edgelink.New(o); err != nil {
		t.Fatal(err)
	}
	n.started = start(t, n.link.Run)
	return n
}

type states struct {
	mu   sync.Mutex
	list []edgelink.State
}

func (s *states) add(st edgelink.State) {
	s.mu.Lock()
	s.list = append(s.list, st)
	s.mu.Unlock()
}

func (s *states) had(phase edgelink.Phase, code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.list {
		if st.Phase == phase && st.Code == code {
			return true
		}
	}
	return false
}

// told tells whether a link was lost with that word in the cause.
func (s *states) told(cause string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.list {
		if st.Phase == edgelink.PhaseLost && strings.Contains(st.Err.Error(), cause) {
			return true
		}
	}
	return false
}

// ready waits for the machine to have a ready link of that generation or later.
func ready(t testing.TB, c *cluster, id fsm.NodeID, generation fsm.Generation) {
	t.Helper()
	await(t, string(id)+" is connected", func() bool {
		n := c.node(id)
		return n.Connected && n.Generation >= generation
	})
}

// answer collects what an exchange hands on.
type answer struct {
	mu     sync.Mutex
	status int
	header http.Header
	body   []byte
	pieces int
	onData func(p []byte) error
	onHead func() error
}

func (a *answer) Head(status int, h http.Header) error {
	a.mu.Lock()
	a.status, a.header = status, h
	a.mu.Unlock()
	if a.onHead != nil {
		return a.onHead()
	}
	return nil
}

func (a *answer) Data(p []byte) error {
	a.mu.Lock()
	a.body = append(a.body, p...)
	a.pieces++
	a.mu.Unlock()
	if a.onData != nil {
		return a.onData(p)
	}
	return nil
}

func (a *answer) Flush() error { return nil }

func (a *answer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.body)
}

func request(g fsm.Grant, body string) *nodelink.Exchange {
	return &nodelink.Exchange{
		Grant: g, Adapter: "adapter-1", Method: "POST", Path: "/v1/chat/completions?x=%2F",
		Header: http.Header{"Content-Type": {"application/json"}, "X-Two": {"one", "two"}}, Body: []byte(body),
	}
}

// world is one edge and one node, linked and ready.
type world struct {
	c *cluster
	e *edge
	n *node
}

func newWorld(t testing.TB, run func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End) *world {
	t.Helper()
	w := &world{c: newCluster(t, "n1")}
	w.e = startEdge(t, w.c, nil)
	w.n = startNode(t, w.e.address, "n1", &hands{run: run}, nil)
	ready(t, w.c, "n1", 1)
	return w
}

// logger writes to the test's output only if asked to: a log after the test's end would panic.
func logger(testing.TB) *slog.Logger {
	if os.Getenv("WIRE_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// words answers with a head and the given pieces.
func words(pieces ...string) func(context.Context, *edgelink.Run, edgelink.Answer) edgelink.End {
	return func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		err := a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		for _, p := range pieces {
			err = errors.Join(err, a.Data([]byte(p)))
		}
		if err != nil {
			return edgelink.End{Code: "answer_failed", Message: err.Error()}
		}
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	}
}

// soon is a deadline that passes within the test.
func (w *world) soon() time.Time { return time.Now().Add(30 * time.Millisecond) }
