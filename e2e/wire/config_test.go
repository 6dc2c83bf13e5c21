package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"iop/e2e/cut"
	"iop/fsm"
	"iop/proto/nodepb"
)

func TestHealthReachesTheMachineAndOutlivesAReconnect(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	n := startNode(t, p.Address(), "n1", &hands{run: words("ok")}, nil)
	ready(t, c, "n1", 1)
	degraded := func() bool {
		out := c.apply(c.session, &fsm.Admit{Request: "probe", Model: model})
		if out.Code == fsm.Granted {
			c.release(out.Grant)
		}
		return out.Code == fsm.Refused
	}
	n.link.Health("p-n1", nodepb.Health_STATE_DEGRADED, "it burns")
	await(t, "it is degraded", degraded)
	p.Cut()
	ready(t, c, "n1", 2)
	await(t, "it is degraded again", degraded)
	n.link.Health("p-n1", nodepb.Health_STATE_HEALTHY, "")
	await(t, "it is healthy", func() bool { return !degraded() })
}

func TestPushedConfiguration(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	var fail atomic.Bool
	h := &hands{configure: func(context.Context, uint64) error {
		if fail.Load() {
			return errors.New("no such adapter")
		}
		return nil
	}}
	startNode(t, e.address, "n1", h, nil)
	ready(t, c, "n1", 1)
	payload := func(fsm.NodeID) *nodepb.NodeConfigPayload { return &nodepb.NodeConfigPayload{} }
	e.links.Push(6, payload)
	await(t, "the node holds it", func() bool { return e.links.Status()[0].Revision == 6 })
	fail.Store(true)
	e.links.Push(7, payload)
	await(t, "the node says why not", func() bool { return e.links.Status()[0].RefreshErr == "no such adapter" })
	if got := e.links.Status()[0].Revision; got != 6 {
		t.Error(got)
	}
}

func TestConfigurationThatCanNotBeAppliedKeepsTheLinkDown(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	var tries atomic.Int32
	h := &hands{configure: func(context.Context, uint64) error {
		if tries.Add(1) < 3 {
			return errors.New("the backend's key is not set")
		}
		return nil
	}}
	startNode(t, e.address, "n1", h, nil)
	ready(t, c, "n1", 3)
}
