package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"testing"

	"iop/edged/nodelink"
	"iop/fsm"
	"iop/proto/nodepb"
)

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

// fenced is nodelink's view of the newest state.
func (c *cluster) fenced(id fsm.NodeID) []fsm.Generation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.Fenced(id)
}
