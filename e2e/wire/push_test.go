package wire

import (
	"context"
	"testing"

	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// gates hold a node's Configure of some revisions until they are opened.
func gates(revisions ...uint64) (map[uint64]chan struct{}, func(context.Context, uint64) error) {
	g := map[uint64]chan struct{}{}
	for _, r := range revisions {
		g[r] = make(chan struct{})
	}
	return g, func(ctx context.Context, revision uint64) error {
		gate := g[revision]
		if gate == nil {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func noPayload(fsm.NodeID) *nodepb.NodeConfigPayload { return &nodepb.NodeConfigPayload{} }

// TestLinkIsReadyOnlyWithTheNewestConfiguration: the node says that it is ready with the configuration of its
// registration, while a newer one, pushed meanwhile, is not confirmed yet.
func TestLinkIsReadyOnlyWithTheNewestConfiguration(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	gate, configure := gates(5, 6)
	n := startNode(t, e.address, "n1", &hands{run: words("ok"), configure: configure}, nil)
	await(t, "the link is pending", func() bool { return len(e.links.Status()) == 1 })
	e.links.Push(6, noPayload)
	close(gate[5])
	await(t, "the node said that it is ready with 5", func() bool { return e.links.Status()[0].Revision == 5 })
	// What the node says after that reaches the machine behind it.
	n.link.Health("p-n1", nodepb.Health_STATE_DEGRADED, "so that the test sees it")
	await(t, "the machine knows the health", func() bool {
		for _, cmd := range c.commands() {
			if _, ok := cmd.(*fsm.SetHealth); ok {
				return true
			}
		}
		return false
	})
	if c.node("n1").Connected {
		t.Error("the link is ready without the newest configuration")
	}
	close(gate[6])
	ready(t, c, "n1", 1)
}

// TestRunWaitsForTheConfigurationThatItNeeds: a run that is begun after a push does not reach the node's hands before
// that configuration, though it comes over another connection; one that was begun before does.
func TestRunWaitsForTheConfigurationThatItNeeds(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	gate, configure := gates(6)
	reached := make(chan uint64, 2)
	h := &hands{configure: configure, run: func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		reached <- r.Lease
		return words("ok")(ctx, r, a)
	}}
	startNode(t, e.address, "n1", h, nil)
	ready(t, c, "n1", 1)
	e.links.Push(6, noPayload)
	ends := make(chan nodelink.End, 1)
	g := c.admit(t, "r1")
	go func() { ends <- e.links.Exchange(t.Context(), request(g, "{}"), &answer{}) }()
	await(t, "the run is on its way", func() bool { return e.links.Status()[0].Runs == 1 })
	e.links.Push(7, noPayload) // the newest counts; behind it, nothing has been overtaken
	select {
	case <-reached:
		t.Error("the run overtook its configuration")
	case <-ends:
		t.Error("the run ended")
	default:
	}
	close(gate[6])
	if end := <-ends; end.Code != "" || !end.Complete {
		t.Errorf("%+v", end)
	}
	c.release(g)
	await(t, "the node has both", func() bool { return e.links.Status()[0].Revision == 7 })
}
