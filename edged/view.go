package edged

import (
	"fmt"
	"sync/atomic"

	"iop/configs"
	"iop/edged/nodelink"
	"iop/fsm"
)

// view is the cluster's configuration at one revision, prepared for the rooms that read it per request. It does not
// change; a new revision is a new view.
type view struct {
	revision fsm.Revision
	cluster  *configs.Cluster
	nodes    map[fsm.NodeID]nodelink.NodeEntry
	adapters map[fsm.ProviderID]string // the adapter that reaches a provider, on its node
}

func newView(revision fsm.Revision, document []byte) (*view, error) {
	c, err := configs.ParseCluster(document)
	if err != nil {
		return nil, fmt.Errorf("read configuration %d of the cluster: %w", revision, err)
	}
	v := &view{
		revision: revision, cluster: c,
		nodes:    make(map[fsm.NodeID]nodelink.NodeEntry, len(c.Nodes)),
		adapters: map[fsm.ProviderID]string{},
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		v.nodes[fsm.NodeID(n.ID)] = nodelink.NodeEntry{
			TokenSHA256: n.TokenHashSHA256, Revision: uint64(revision), Payload: payload(n),
		}
		for j := range n.Providers {
			v.adapters[fsm.ProviderID(n.Providers[j].ID)] = n.Providers[j].Adapter
		}
	}
	return v, nil
}

// current holds the newest view. It is what nodelink knows as its Catalog.
type current struct{ p atomic.Pointer[view] }

func (c *current) load() *view   { return c.p.Load() }
func (c *current) store(v *view) { c.p.Store(v) }

// Node tells nodelink of a node.
func (c *current) Node(id fsm.NodeID) (nodelink.NodeEntry, bool) {
	e, ok := c.load().nodes[id]
	return e, ok
}
