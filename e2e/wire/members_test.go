package wire

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"iop/configs"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded"
	"iop/proto/nodepb"
)

// members are nodelink's Members.
type members struct {
	mu    sync.Mutex
	index uint64
	list  map[fsm.EdgeID]string
}

func (m *members) Edges() (map[fsm.EdgeID]string, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list, m.index
}

func (m *members) set(index uint64, list map[fsm.EdgeID]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.list = index, list
}

// plain is a catalog of nodes that serve nothing.
type plain struct{ *cluster }

func (p plain) Node(id fsm.NodeID) (nodelink.NodeEntry, bool) {
	e, ok := p.cluster.Node(id)
	e.Payload = &nodepb.NodeConfigPayload{}
	return e, ok
}

// membersWorld is two edges that tell of each other, and the program of a node.
type membersWorld struct {
	*two
	told1, told2 *members
	dir          string
}

func newMembersWorld(t *testing.T) *membersWorld {
	t.Helper()
	w := &membersWorld{told1: &members{}, told2: &members{}, dir: t.TempDir()}
	w.two = &two{c: newCluster(t, "n1")}
	w.e1 = startEdge(t, w.c, func(o *nodelink.Options) { o.Members, o.Catalog = w.told1, plain{w.c} })
	w.c2 = &second{cluster: w.c, session: w.c.apply(0, &fsm.OpenSession{Edge: "edge-2", Nonce: 8}).Session}
	w.e2 = startEdge(t, w.c, func(o *nodelink.Options) {
		o.Members, o.Catalog, o.Commands, o.Edge = w.told2, plain{w.c}, w.c2, "edge-2"
	})
	w.c.mu.Lock()
	w.c.effects = func(es []fsm.Effect) {
		w.tell(w.e1, edgeID, es)
		w.tell(w.e2, "edge-2", es)
	}
	w.c.mu.Unlock()
	return w
}

func (w *membersWorld) both() map[fsm.EdgeID]string {
	return map[fsm.EdgeID]string{edgeID: w.e1.address, "edge-2": w.e2.address}
}

// daemon starts the node's program, which knows the given edges.
func (w *membersWorld) daemon(t *testing.T, edges ...string) *started {
	t.Helper()
	d, err := noded.New(noded.Options{
		Config: &configs.Node{Node: configs.NodeSelf{ID: "n1", Token: token, Edges: edges, DataDir: w.dir}},
		Logger: logger(t), Stdout: io.Discard, StopWait: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(ctx context.Context) error { return d.Run(ctx) })
}

func (w *membersWorld) linkedTo(edge fsm.EdgeID) bool {
	for _, l := range w.c.node("n1").Links {
		if l.Edge == edge && l.State == fsm.LinkReady {
			return true
		}
	}
	return false
}

// A node that knows one edge is told of the others, keeps a link to each, and finds them again after a restart although the
// one of its file is gone.
func TestNodeLinksToTheEdgesItIsToldOf(t *testing.T) {
	w := newMembersWorld(t)
	w.told1.set(5, map[fsm.EdgeID]string{edgeID: w.e1.address})
	n := w.daemon(t, w.e1.address)
	await(t, "the first edge is linked", func() bool { return w.linkedTo(edgeID) })
	w.told1.set(6, w.both())
	w.e1.links.MembersChanged()
	await(t, "the second edge is linked", func() bool { return w.linkedTo("edge-2") })
	await(t, "it is kept", func() bool {
		b, _ := os.ReadFile(filepath.Join(w.dir, "edges.json"))
		return strings.Contains(string(b), w.e2.address)
	})
	n.stop(t)
	await(t, "both know that it left", func() bool { return !w.linkedTo(edgeID) && !w.linkedTo("edge-2") })
	w.e1.stop(t)
	n = w.daemon(t, w.e1.address)
	await(t, "the second edge is linked again", func() bool { return w.linkedTo("edge-2") })
	n.stop(t)
	if err := os.WriteFile(filepath.Join(w.dir, "edges.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.told2.set(7, w.both())
	w.daemon(t, w.e2.address) // a broken file is no reason not to start
	await(t, "the edge of the file is linked", func() bool { return w.linkedTo("edge-2") })
}

// An edge that lags behind does not take back what a newer word said; an edge that left the membership is dialled no more
// once its link has ended, and the addresses of the file always are.
func TestNodeLeavesWhatLeftTheMembership(t *testing.T) {
	w := newMembersWorld(t)
	w.told1.set(6, w.both())
	w.daemon(t, w.e1.address)
	await(t, "both are linked", func() bool { return w.linkedTo(edgeID) && w.linkedTo("edge-2") })
	w.told2.set(4, map[fsm.EdgeID]string{edgeID: "127.0.0.1:1"})
	w.e2.links.MembersChanged()
	w.told1.set(8, map[fsm.EdgeID]string{edgeID: w.e1.address})
	w.e1.links.MembersChanged()
	await(t, "it has taken the newer word", func() bool {
		b, _ := os.ReadFile(filepath.Join(w.dir, "edges.json"))
		return strings.Contains(string(b), w.e1.address) && !strings.Contains(string(b), w.e2.address)
	})
	if !w.linkedTo("edge-2") {
		t.Error("the link of an edge that left is cut")
	}
	end := func(edge fsm.EdgeID, by nodelink.Commands) {
		for _, l := range w.c.node("n1").Links {
			if l.Edge == edge {
				_, _ = by.Do(t.Context(), &fsm.LinkLost{Node: "n1", Generation: l.Generation, Reason: fsm.ReasonHeartbeat})
			}
		}
	}
	end("edge-2", w.c2)
	await(t, "the link is gone", func() bool { return w.e2.counts.get("down n1 heartbeat") == 1 })
	end(edgeID, w.c)
	await(t, "the edge of the file is linked again", func() bool { return w.e1.counts.get("up n1") == 2 && w.linkedTo(edgeID) })
	if got := w.e2.counts.get("up n1"); got != 1 {
		t.Error("the edge that left was dialled again:", got)
	}
}
