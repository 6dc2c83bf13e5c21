package edged

import (
	"encoding/hex"
	"fmt"
	"sync/atomic"

	"iop/configs"
	"iop/edged/nodelink"
	"iop/edged/openai"
	"iop/fsm"
	"iop/proto/nodepb"
)

// view is the cluster's configuration at one revision, prepared for the rooms that read it per request. It does not
// change; a new revision is a new view.
type view struct {
	revision fsm.Revision
	cluster  *configs.Cluster
	nodes    map[fsm.NodeID]nodelink.NodeEntry
	public   *openai.View
}

func newView(revision fsm.Revision, document []byte) (*view, error) {
	c, err := configs.ParseCluster(document)
	if err != nil {
		return nil, fmt.Errorf("read configuration %d of the cluster: %w", revision, err)
	}
	return viewOf(revision, c)
}

// viewOf prepares a configuration that was read already.
func viewOf(revision fsm.Revision, c *configs.Cluster) (*view, error) {
	public, err := publicView(c)
	if err != nil {
		return nil, err
	}
	v := &view{
		revision: revision, cluster: c, public: public,
		nodes: make(map[fsm.NodeID]nodelink.NodeEntry, len(c.Nodes)),
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		v.nodes[fsm.NodeID(n.ID)] = nodelink.NodeEntry{
			TokenSHA256: n.TokenHashSHA256, Revision: uint64(revision), Payload: payload(n),
		}
	}
	return v, nil
}

// current holds the newest view. It is what nodelink knows as its Catalog.
type current struct {
	p atomic.Pointer[view]
	// ownToken gives the hash of the token that a node got by joining; set before anybody asks.
	ownToken func(fsm.NodeID) (fsm.TokenHash, bool)
}

func (c *current) load() *view   { return c.p.Load() }
func (c *current) store(v *view) { c.p.Store(v) }

// payload is a node's part of the configuration, nil if it has none of that name.
func (v *view) payload(id fsm.NodeID) *nodepb.NodeConfigPayload { return v.nodes[id].Payload }

// Node tells nodelink of a node.
func (c *current) Node(id fsm.NodeID) (nodelink.NodeEntry, bool) {
	e, ok := c.load().nodes[id]
	if ok && c.ownToken != nil {
		if own, joined := c.ownToken(id); joined {
			e.TokenSHA256 = hex.EncodeToString(own[:])
		}
	}
	return e, ok
}
