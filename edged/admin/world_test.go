package admin_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// world is a machine behind a lock, as storage has it, with a lossy fan-out.
type world struct {
	t        *testing.T
	mu       sync.RWMutex
	m        *fsm.Machine
	seq      map[fsm.SessionID]uint64
	now      fsm.Time
	watchers map[chan fsm.Effect]bool
	joined   *sync.Cond // a watcher came or went
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, m: fsm.New(), seq: map[fsm.SessionID]uint64{}, now: fsm.Second, watchers: map[chan fsm.Effect]bool{}}
	w.joined = sync.NewCond(&w.mu)
	return w
}

func (w *world) View(fn func(*fsm.Machine)) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	fn(w.m)
}

func (w *world) Watch(ctx context.Context, n int) <-chan fsm.Effect {
	c := make(chan fsm.Effect, n)
	w.mu.Lock()
	w.watchers[c] = true
	w.joined.Broadcast()
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watchers, c)
		close(c)
		w.joined.Broadcast()
	})
	return c
}

// awaitWatchers waits until n are there.
func (w *world) awaitWatchers(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.watchers) != n {
		w.joined.Wait()
	}
}

// epoch is the wall clock of the entries. It lies ahead, so that no real time is added to ages and they are the same at
// every run.
var epoch = time.Date(2101, 2, 3, 4, 5, 6, 0, time.UTC)

// do applies commands of a session as one entry and returns their outcomes.
func (w *world) do(s fsm.SessionID, commands ...fsm.Command) []fsm.Outcome {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq[s]++
	res := w.m.Apply(&fsm.Entry{
		Index: w.m.Index() + 1, Term: 3, Elapsed: w.now, Wall: epoch.Add(time.Duration(w.now)).UnixNano(),
		Batches: []fsm.Batch{{Session: s, Seq: w.seq[s], Sum: 1, Commands: commands}},
	})
	if err := w.m.Check(); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range res.Effects {
		for c := range w.watchers {
			select {
			case c <- e:
			default:
			}
		}
	}
	return append([]fsm.Outcome(nil), res.Outcomes[0]...)
}

func (w *world) open(edge fsm.EdgeID) fsm.SessionID {
	w.t.Helper()
	return w.do(0, &fsm.OpenSession{Edge: edge, Nonce: 7})[0].Session
}

func (w *world) link(s fsm.SessionID, node fsm.NodeID) fsm.Generation {
	w.t.Helper()
	o := w.do(s, &fsm.RegisterNode{Node: node, Instance: 9})[0]
	if o.Code != fsm.Registered {
		w.t.Fatalf("register %s: %v %v", node, o.Code, o.Refusal)
	}
	w.do(s, &fsm.NodeReady{Node: node, Generation: o.Generation})
	return o.Generation
}

// admit admits a request and wants the code.
func (w *world) admit(s fsm.SessionID, id fsm.RequestID, model fsm.ModelID, class fsm.Class, want fsm.Code) fsm.Outcome {
	w.t.Helper()
	o := w.do(s, &fsm.Admit{Request: id, Model: model, Class: class, InputTokens: 12, Needs: fsm.NeedChat})[0]
	if o.Code != want {
		w.t.Fatalf("admit %s: %v %v, want %v", id, o.Code, o.Refusal, want)
	}
	return o
}

// file is the edge file whose cluster part the worlds run with.
const file = `
edge: {id: edge-1, data_dir: ./data}
models:
  - {id: "ornith:35b", providers: {mac: mlx/ornith-35b}}
  - {id: both, providers: {mac: mlx/ornith-35b, gpu: ornith-awq}}
  - {id: agent, providers: {agent: agent}}
nodes:
  - id: studio
    alias: 맥 스튜디오
    token_hash_sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
    adapters:
      - {id: mlx, type: openai_compat, base_url: "http://127.0.0.1:8000/v1"}
      - {id: agent, type: cli, command: [agent]}
    providers:
      - {id: mac, type: mlx, adapter: mlx, models: [mlx/ornith-35b], capacity: 2, long_context_capacity: 1, context_window_tokens: 131072, priority: 10}
      - {id: agent, type: cli, adapter: agent, models: [agent]}
  - id: tower
    token_hash_sha256: 6b3a55e0261b0304143f805a24924d0c1c44524821305f31d9277843b8a10f4e
    adapters:
      - {id: vllm, type: openai_compat, base_url: "http://127.0.0.1:8000/v1"}
    providers:
      - {id: gpu, type: vllm, adapter: vllm, models: [ornith-awq], capacity: 4}
`

// configure applies the configuration of file.
func (w *world) configure() {
	w.t.Helper()
	e, _, err := configs.ParseEdge([]byte(file), "edge.yaml", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	mac := fsm.Candidate{Provider: "mac", Served: "mlx/ornith-35b"}
	c := fsm.Config{
		Pool:  fsm.Pool{MaxQueue: 16, QueueTimeout: 30 * fsm.Second, ReattachWindow: 15 * fsm.Second, FenceTimeout: 10 * fsm.Second},
		Nodes: []fsm.NodeID{"studio", "tower"},
		Models: []fsm.ModelConfig{
			{ID: "agent", Candidates: []fsm.Candidate{{Provider: "agent", Served: "agent"}}},
			{ID: "both", Candidates: []fsm.Candidate{mac, {Provider: "gpu", Served: "ornith-awq"}}},
			{ID: "ornith:35b", Candidates: []fsm.Candidate{mac}},
		},
		Providers: []fsm.ProviderConfig{
			{ID: "agent", Node: "studio", LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds},
			{ID: "gpu", Node: "tower", Capacity: 4, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds},
			{ID: "mac", Node: "studio", Capacity: 2, LongCapacity: 1, ContextWindow: 131072, Priority: 10, Enabled: true, Can: fsm.AllNeeds},
		},
	}
	if o := w.do(0, &fsm.ApplyConfig{Document: e.Canonical(), Config: c})[0]; o.Code != fsm.Applied {
		w.t.Fatalf("apply: %v", o)
	}
}

// busy is a world in which everything occurs: an offline node, a full provider, an unlimited one, long and normal
// leases and waiters.
func busy(t *testing.T) *world {
	w := newWorld(t)
	w.configure()
	s := w.open("edge-1")
	w.link(s, "studio")
	w.admit(s, "r-1", "ornith:35b", fsm.ClassLong, fsm.Granted)
	w.now += 2 * fsm.Second
	w.admit(s, "r-2", "both", fsm.ClassNormal, fsm.Granted)
	w.admit(s, "r-3", "agent", fsm.ClassNormal, fsm.Granted)
	w.now += 500 * fsm.Millisecond
	w.admit(s, "r-4", "ornith:35b", fsm.ClassLong, fsm.Queued)
	w.now += 1500 * fsm.Millisecond
	w.admit(s, "r/5 \x1b[31m", "both", fsm.ClassNormal, fsm.Queued)
	return w
}

// serve starts an admin listener over the world.
func serve(t *testing.T, w *world, change func(*admin.Options)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	o := admin.Options{
		Source:   w,
		Edge:     "edge-1",
		Standing: func() admin.Standing { return admin.Standing{Role: "leader", Leader: "edge-1"} },
		Versions: func() map[fsm.NodeID]string { return map[fsm.NodeID]string{"studio": "v1.2.3"} },
		Address:  server.Listener.Addr().String(),
		Backend: func(_ context.Context, n fsm.NodeID, p fsm.ProviderID) *adminapi.Backend {
			if n != "studio" || p != "mac" {
				return &adminapi.Backend{Error: "the node has no link to this edge"}
			}
			return &adminapi.Backend{
				Numbers: map[string]float64{"running": 2, "kv_use": 0.25}, Words: map[string]string{"version": "0.26"},
				Models: []string{"mlx/ornith-35b"}, Sources: []string{"/v1/models"},
			}
		},
	}
	if change != nil {
		change(&o)
	}
	server.Config.Handler = admin.New(o)
	server.Start()
	t.Cleanup(server.Close)
	return server
}
