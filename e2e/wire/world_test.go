package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
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

// cluster is a machine behind a lock: what storage is to an edge, without a disk.
type cluster struct {
	mu      sync.Mutex
	m       *fsm.Machine
	index   uint64
	session fsm.SessionID
	seq     uint64
	effects func([]fsm.Effect)
	said    []fsm.Command // by the links
	refuse  int           // how many commands fail without an outcome
}

var errNoOutcome = errors.New("no outcome this time")

const (
	edgeID = "edge-1"
	model  = fsm.ModelID("m")
	token  = "a node's token"
)

func newCluster(t testing.TB, nodes ...fsm.NodeID) *cluster {
	t.Helper()
	c := &cluster{m: fsm.New()}
	config := fsm.Config{
		Pool:  fsm.Pool{MaxQueue: 64, FenceTimeout: 10 * fsm.Second, StartupGrace: 30 * fsm.Second},
		Nodes: nodes,
	}
	mc := fsm.ModelConfig{ID: model}
	for _, n := range nodes {
		p := fsm.ProviderID("p-" + string(n))
		config.Providers = append(config.Providers, fsm.ProviderConfig{
			ID: p, Node: n, Capacity: 2000, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds,
		})
		mc.Candidates = append(mc.Candidates, fsm.Candidate{Provider: p, Served: "served"})
	}
	config.Models = []fsm.ModelConfig{mc}
	c.apply(0, &fsm.ApplyConfig{Document: []byte("{}"), Config: config})
	c.session = c.apply(0, &fsm.OpenSession{Edge: edgeID, Nonce: 7}).Session
	return c
}

// apply makes one entry of one command.
func (c *cluster) apply(session fsm.SessionID, cmd fsm.Command) fsm.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applyLocked(session, cmd)
}

func (c *cluster) applyLocked(session fsm.SessionID, cmd fsm.Command) fsm.Outcome {
	c.index++
	b := fsm.Batch{Session: session, Commands: []fsm.Command{cmd}}
	if session != 0 {
		c.seq++
		b.Seq, b.AckBelow = c.seq, c.seq
	}
	r := c.m.Apply(&fsm.Entry{Index: c.index, Term: 1, Elapsed: fsm.Time(c.index) * fsm.Microsecond, Batches: []fsm.Batch{b}})
	out := r.Outcomes[0][0]
	if c.effects != nil && len(r.Effects) > 0 {
		c.effects(r.Effects)
	}
	return out
}

// Do is nodelink's Commands.
func (c *cluster) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return fsm.Outcome{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return fsm.Outcome{}, errNoOutcome
	}
	c.said = append(c.said, cmd)
	return c.applyLocked(c.session, cmd), nil
}

// Node is nodelink's Catalog: every node of the configuration has the same token.
func (c *cluster) Node(id fsm.NodeID) (nodelink.NodeEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.m.Config().Nodes {
		if n == id {
			sum := sha256.Sum256([]byte(token))
			return nodelink.NodeEntry{
				TokenSHA256: hex.EncodeToString(sum[:]), Revision: 5,
				Payload: &nodepb.NodeConfigPayload{Providers: []*nodepb.ProviderConfig{{Id: "p-" + string(id), Capacity: 2000}}},
			}, true
		}
	}
	return nodelink.NodeEntry{}, false
}

// admit gets a slot, which the test fails without.
func (c *cluster) admit(t testing.TB, request string) fsm.Grant {
	t.Helper()
	out := c.apply(c.session, &fsm.Admit{Request: fsm.RequestID(request), Model: model})
	if out.Code != fsm.Granted {
		t.Fatalf("admit %s: %v %v", request, out.Code, out.Refusal)
	}
	return out.Grant
}

func (c *cluster) release(g fsm.Grant) fsm.Outcome {
	return c.apply(c.session, &fsm.Release{Lease: g.Lease, Reason: fsm.ReasonDone})
}

// lost returns the reasons of the LinkLost commands said so far.
func (c *cluster) lost() []fsm.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []fsm.Reason
	for _, cmd := range c.said {
		if l, ok := cmd.(*fsm.LinkLost); ok {
			list = append(list, l.Reason)
		}
	}
	return list
}

func (c *cluster) node(id fsm.NodeID) fsm.NodeView {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.m.Snapshot().Nodes {
		if n.ID == id {
			return n
		}
	}
	return fsm.NodeView{}
}

func (c *cluster) inFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.m.Snapshot().Providers {
		n += p.InFlight
	}
	return n
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

func contains(t testing.TB, s, part string) {
	t.Helper()
	if !strings.Contains(s, part) {
		t.Errorf("%q lacks %q", s, part)
	}
}

// soon is a deadline that passes within the test.
func (w *world) soon() time.Time { return time.Now().Add(30 * time.Millisecond) }

func (c *cluster) commands() []fsm.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.said)
}

// waiting returns the requests in the queue.
func (c *cluster) waiting() []fsm.RequestID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []fsm.RequestID
	for _, r := range c.m.Waiters() {
		list = append(list, r.ID)
	}
	return list
}

// held returns the grants of all leases.
func (c *cluster) held() []fsm.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []fsm.Grant
	for _, r := range c.m.Leases() {
		list = append(list, fsm.Grant{Lease: r.Lease, Request: r.ID})
	}
	return list
}
