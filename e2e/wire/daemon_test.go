package wire

import (
	"testing"

	"iop/configs"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded"
	"iop/proto/nodepb"
)

// catalog gives nodes payloads of the test's own, whatever the machine has.
type catalog struct {
	*cluster
	payloads map[fsm.NodeID]*nodepb.NodeConfigPayload
}

func (c catalog) Node(id fsm.NodeID) (nodelink.NodeEntry, bool) {
	e, ok := c.cluster.Node(id)
	if p := c.payloads[id]; p != nil {
		e.Payload = p
	}
	return e, ok
}

// offer is one provider, p-NODE, over an adapter at a backend.
func offer(node, kind, url string, capacity uint32) *nodepb.NodeConfigPayload {
	return &nodepb.NodeConfigPayload{
		Adapters: []*nodepb.AdapterConfig{{Id: "adapter-1", Type: "openai_compat", BaseUrl: url}},
		Providers: []*nodepb.ProviderConfig{{
			Id: "p-" + node, Type: kind, Adapter: "adapter-1", Models: []string{"served"}, Capacity: capacity, Enabled: true,
		}},
	}
}

// newDaemon is a whole noded that is not running.
func newDaemon(t testing.TB, id, token string, edges ...string) *noded.Daemon {
	t.Helper()
	d, err := noded.New(noded.Options{
		Config: &configs.Node{Node: configs.NodeSelf{ID: id, Token: configs.Secret(token), Edges: edges}}, Logger: logger(t), Version: "v-node", StopWait: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
