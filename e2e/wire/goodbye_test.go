package wire

import (
	"context"
	"slices"
	"testing"
	"time"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
)

func TestNodesGoodbyeIsFencedAtOnce(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval = time.Hour })
	n := startNode(t, e.address, "n1", &hands{run: words("ok")}, func(o *edgelink.Options) { o.StopWait = time.Hour })
	ready(t, c, "n1", 1)
	n.stop(t)
	await(t, "it is fenced", func() bool { return slices.Equal(c.lost(), []fsm.Reason{fsm.ReasonGoodbye}) })
	if v := c.node("n1"); v.Connected {
		t.Errorf("%+v", v)
	}
}

// The node stops with a run in progress: it ends in peace, nothing new is granted meanwhile, then the link goes.
func TestNodesGoodbyeLetsRunsEnd(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval = time.Hour })
	began, may := make(chan struct{}), make(chan struct{})
	h := &hands{run: func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		close(began)
		<-may
		return words("to the end")(ctx, r, a)
	}}
	n := startNode(t, e.address, "n1", h, func(o *edgelink.Options) { o.StopWait = time.Hour })
	ready(t, c, "n1", 1)
	a := &answer{}
	ended := make(chan nodelink.End, 1)
	g := c.admit(t, "r1")
	go func() { ended <- e.links.Exchange(t.Context(), request(g, "{}"), a) }()
	<-began
	n.cancel()
	await(t, "the edge heard it", func() bool { return e.links.Status()[0].Closing })
	await(t, "nothing is granted", func() bool {
		return c.apply(c.session, &fsm.Admit{Request: "r2", Model: model}).Code == fsm.Refused
	})
	if end := e.links.Exchange(t.Context(), request(g, "{}"), &answer{}); end.Dispatched != nodelink.DispatchedNo {
		t.Errorf("%+v", end)
	}
	close(may)
	if end := <-ended; !end.Complete || a.text() != "to the end" {
		t.Errorf("%+v", end)
	}
	n.stop(t)
	await(t, "it is fenced", func() bool { return slices.Equal(c.lost(), []fsm.Reason{fsm.ReasonGoodbye}) })
}

func TestNodesStopCancelsRunsAfterStopWait(t *testing.T) {
	h := newHanging(true)
	close(h.release)
	w := newWorld(t, h.run) // StopWait 0
	ended := make(chan nodelink.End, 1)
	g := w.c.admit(t, "r1")
	go func() { ended <- w.e.links.Exchange(t.Context(), request(g, "{}"), &answer{}) }()
	<-h.began
	w.n.stop(t)
	if end := <-ended; end.Code == "" || end.Complete || end.Dispatched == nodelink.DispatchedNo {
		t.Errorf("%+v", end)
	}
	await(t, "it is fenced", func() bool { return slices.Equal(w.c.lost(), []fsm.Reason{fsm.ReasonGoodbye}) })
}

func TestEdgesGoodbye(t *testing.T) {
	w := newWorld(t, words("ok"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w.e.links.Goodbye(ctx)
	if got := w.c.lost(); !slices.Equal(got, []fsm.Reason{fsm.ReasonGoodbye}) {
		t.Error(got)
	}
	if v := w.c.node("n1"); v.Connected {
		t.Errorf("%+v", v)
	}
	await(t, "the node was told, and is refused until the edge is back", func() bool { return w.e.counts.get("refused stopping") > 0 })
	w.e.stop(t)
}

func TestEdgeRestartsAndTheNodeComesBack(t *testing.T) {
	w := newWorld(t, words("ok"))
	p, err := cut.New(w.e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	startNode(t, p.Address(), "n1", &hands{run: words("ok")}, nil) // refused as a duplicate until the other is gone
	w.n.stop(t)
	ready(t, w.c, "n1", 2)
	w.e.stop(t)
	c2 := newCluster(t, "n1")
	e2 := startEdge(t, c2, nil)
	p.Retarget(e2.address)
	ready(t, c2, "n1", 1)
}
