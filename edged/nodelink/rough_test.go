package nodelink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"iop/fsm"
	"iop/proto/nodepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for a fact.
const patience = 20 * time.Second

func await(t *testing.T, fact string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", fact)
		}
	}
}

// yes is a Commands that agrees with everything: each registration gets the next generation. (What a real machine makes
// of it is tested in e2e/wire.)
type yes struct {
	mu         sync.Mutex
	generation fsm.Generation
	said       []fsm.Command
	registered func(fsm.Generation) // called before the outcome is out; may be nil
}

func (y *yes) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return fsm.Outcome{}, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.said = append(y.said, cmd)
	if _, ok := cmd.(*fsm.RegisterNode); !ok {
		return fsm.Outcome{Code: fsm.Done}, nil
	}
	y.generation++
	if y.registered != nil {
		y.registered(y.generation)
	}
	return fsm.Outcome{Code: fsm.Registered, Generation: y.generation}, nil
}

func (y *yes) lost() []fsm.Reason {
	y.mu.Lock()
	defer y.mu.Unlock()
	var list []fsm.Reason
	for _, cmd := range y.said {
		if l, ok := cmd.(*fsm.LinkLost); ok {
			list = append(list, l.Reason)
		}
	}
	return list
}

// Node knows every node but "stranger"; the token is "secret".
func (y *yes) Node(id fsm.NodeID) (NodeEntry, bool) {
	sum := sha256.Sum256([]byte("secret"))
	return NodeEntry{TokenSHA256: hex.EncodeToString(sum[:]), Payload: &nodepb.NodeConfigPayload{}}, id != "stranger"
}

type tally struct {
	noMetrics
	mu sync.Mutex
	n  map[string]int
}

func (m *tally) FrameDropped(kind string) {
	m.mu.Lock()
	m.n[kind]++
	m.mu.Unlock()
}

func (m *tally) dropped(kind string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n[kind]
}

// edge is Links under test.
type edge struct {
	*Links
	y       *yes
	tally   *tally
	address string
	stop    func()
}

func startEdge(t *testing.T, set func(*Options)) *edge {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{y: &yes{}, tally: &tally{n: map[string]int{}}, address: listener.Addr().String()}
	o := Options{Listener: listener, Commands: e.y, Catalog: e.y, Metrics: e.tally, HeartbeatInterval: time.Hour}
	if set != nil {
		set(&o)
	}
	if e.Links, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("Run does not return")
		}
	})
	t.Cleanup(e.stop)
	return e
}

// rough is a node played by hand, frame by frame.
type rough struct {
	t  *testing.T
	e  *edge
	st grpc.BidiStreamingClient[nodepb.NodeFrame, nodepb.EdgeFrame]
	ok *nodepb.Accepted
}

func dialRough(t *testing.T, e *edge) *rough {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+e.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	st, err := nodepb.NewNodeLinkClient(cc).Link(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &rough{t: t, e: e, st: st}
}

func (r *rough) send(f *nodepb.NodeFrame) {
	r.t.Helper()
	if err := r.st.Send(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rough) register(reg *nodepb.Register) *nodepb.EdgeFrame {
	r.t.Helper()
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: reg}})
	f, err := r.st.Recv()
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

func registration() *nodepb.Register {
	return &nodepb.Register{Node: "n", Token: "secret", Instance: 1, ProtocolMin: 1, ProtocolMax: 1}
}

// link registers and says ready.
func (r *rough) link() *rough {
	r.t.Helper()
	r.ok = r.register(registration()).GetAccepted()
	if r.ok == nil {
		r.t.Fatal("not accepted")
	}
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Ready{Ready: &nodepb.Ready{Generation: r.ok.Generation}}})
	await(r.t, "ready", func() bool { st := r.e.Status(); return len(st) == 1 && st[0].Ready })
	return r
}

// next returns the next frame that is no heartbeat and no NeedConnections.
func (r *rough) next() *nodepb.EdgeFrame {
	r.t.Helper()
	for {
		f, err := r.st.Recv()
		if err != nil {
			r.t.Fatal(err)
		}
		if f.GetHeartbeat() == nil && f.GetNeedConnections() == nil {
			return f
		}
	}
}

// data opens a data connection with that handshake and returns the edge's answer.
func (r *rough) data(h nodepb.Handshake) (net.Conn, bool) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.e.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(nodepb.AppendHandshake(nil, h)); err != nil {
		r.t.Fatal(err)
	}
	ok, err := nodepb.ReadHandshakeAnswer(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, ok
}

func (r *rough) proof() nodepb.Handshake {
	return nodepb.Handshake{Node: "n", Generation: r.ok.Generation, Secret: r.ok.Secret}
}

func (r *rough) exchange() *Exchange {
	return &Exchange{Grant: fsm.Grant{Node: "n", Generation: fsm.Generation(r.ok.Generation), Lease: 5}, Method: "POST", Path: "/"}
}

type nothing struct{}

func (nothing) Head(int, http.Header) error { return nil }
func (nothing) Data([]byte) error           { return nil }
func (nothing) Flush() error                { return nil }
