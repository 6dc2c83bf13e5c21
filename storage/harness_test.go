package storage

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/fsm"
)

func TestMain(m *testing.M) {
	if childDir() != "" {
		child()
		return
	}
	if diskChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

// long is how long a test waits for what should happen at once.
const long = 20 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	return ctx
}

func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, Options{Dir: dir, Replica: "e1", Version: "v1", Logger: testLogger(t)})
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(within(t)); err != nil && s.Err() == nil {
		t.Error(err)
	}
}

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// world is a configuration of n providers p0… on one node, all for model m, of the given capacity.
func world(n, capacity int) *fsm.ApplyConfig {
	c := fsm.Config{
		Pool: fsm.Pool{
			MaxQueue: 100_000, QueueTimeout: 3600 * fsm.Second, StartupGrace: 10 * fsm.Second,
			ReattachWindow: 60 * fsm.Second, FenceTimeout: 30 * fsm.Second,
		},
		Nodes: []fsm.NodeID{"n1"},
	}
	model := fsm.ModelConfig{ID: "m"}
	for i := range n {
		id := fsm.ProviderID(fmt.Sprintf("p%d", i))
		c.Providers = append(c.Providers, fsm.ProviderConfig{
			ID: id, Node: "n1", Capacity: capacity, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds,
		})
		model.Candidates = append(model.Candidates, fsm.Candidate{Provider: id, Served: "served"})
	}
	c.Models = []fsm.ModelConfig{model}
	return &fsm.ApplyConfig{Document: []byte(`{"v":1}`), Config: c, Force: true}
}

// running opens a session with a ready node over a world.
func running(t testing.TB, s *Store, config *fsm.ApplyConfig, effects func([]fsm.Effect)) *Session {
	t.Helper()
	ctx := within(t)
	if o, err := s.Do(ctx, config); err != nil || o.Code != fsm.Applied {
		t.Fatalf("apply config: %v %v", o, err)
	}
	x, err := s.OpenSession(ctx, "e1", effects)
	if err != nil {
		t.Fatal(err)
	}
	o, err := x.Do(ctx, &fsm.RegisterNode{Node: "n1", Instance: 7})
	if err != nil || o.Code != fsm.Registered {
		t.Fatalf("register: %v %v", o, err)
	}
	if r, err := x.Do(ctx, &fsm.NodeReady{Node: "n1", Generation: o.Generation}); err != nil || r.Code != fsm.Done {
		t.Fatalf("ready: %v %v", r, err)
	}
	return x
}

func admit(id string) *fsm.Admit {
	return &fsm.Admit{Request: fsm.RequestID(id), Model: "m", Needs: fsm.NeedChat}
}

// must returns the outcome of a command that has to be answered with one of the codes.
func must(t testing.TB, x *Session, cmd fsm.Command, codes ...fsm.Code) fsm.Outcome {
	t.Helper()
	o, err := x.Do(within(t), cmd)
	if err != nil {
		t.Fatalf("%T: %v", cmd, err)
	}
	for _, c := range codes {
		if o.Code == c {
			return o
		}
	}
	t.Fatalf("%T: %v %v, want %v", cmd, o.Code, o.Refusal, codes)
	return o
}

// collector keeps what a session was told.
type collector struct {
	mu   sync.Mutex
	list []fsm.Effect
	more chan struct{}
}

func newCollector() *collector { return &collector{more: make(chan struct{}, 1)} }

func (c *collector) take(effects []fsm.Effect) {
	c.mu.Lock()
	c.list = append(c.list, effects...)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// wait returns the effects when there are n at least.
func (c *collector) wait(t testing.TB, n int) []fsm.Effect {
	t.Helper()
	timeout := time.After(long)
	for {
		c.mu.Lock()
		list := append([]fsm.Effect(nil), c.list...)
		c.mu.Unlock()
		if len(list) >= n {
			return list
		}
		select {
		case <-c.more:
		case <-timeout:
			t.Fatalf("%d effects, want %d: %v", len(list), n, list)
		}
	}
}

// funcReceiver is a Receiver by function.
type funcReceiver func(fsm.Outcome, error)

func (f funcReceiver) Receive(o fsm.Outcome, err error) { f(o, err) }

func digest(s *Store) (d [32]byte) {
	s.View(func(m *fsm.Machine) { d = m.Digest() })
	return d
}

func checked(t testing.TB, s *Store) {
	t.Helper()
	s.View(func(m *fsm.Machine) {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
}
