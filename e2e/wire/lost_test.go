package wire

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
)

func TestLostTransportIsFencedAtOnceAndComesBack(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval = time.Hour })
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	h := newHanging(false)
	close(h.release)
	startNode(t, p.Address(), "n1", &hands{run: h.run}, nil)
	ready(t, c, "n1", 1)
	g := c.admit(t, "r1")
	ended := make(chan nodelink.End, 1)
	go func() { ended <- e.links.Exchange(t.Context(), request(g, "{}"), &answer{}) }()
	<-h.began
	p.Cut()
	if end := <-ended; end.Code != nodelink.CodeLinkLost {
		t.Errorf("%+v", end)
	}
	<-h.stopped // the node cancels what the link started
	ready(t, c, "n1", 2)
	if got := c.lost(); !slices.Equal(got, []fsm.Reason{fsm.ReasonLinkLost}) {
		t.Error(got)
	}
	if out := c.release(g); out.Code != fsm.AlreadyReleased {
		t.Error("the fence did not return the lease:", out.Code)
	}
	if end := e.links.Exchange(t.Context(), request(g, "{}"), &answer{}); end.Code != nodelink.CodeLinkLost || end.Dispatched != nodelink.DispatchedNo {
		t.Errorf("a grant of the old generation was dispatched: %+v", end)
	}
}

// A node that stands still (SIGSTOP) closes nothing. It is fenced by its silence; what it says later changes nothing.
func TestSilenceIsFencedAndLateFramesChangeNothing(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval, o.HeartbeatMissed = 20*time.Millisecond, 5 })
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	h := newHanging(false)
	close(h.release)
	startNode(t, p.Address(), "n1", &hands{run: h.run}, nil)
	ready(t, c, "n1", 1)
	g := c.admit(t, "r1")
	ended := make(chan nodelink.End, 1)
	go func() { ended <- e.links.Exchange(t.Context(), request(g, "{}"), &answer{}) }()
	<-h.began
	p.Refuse(true)
	p.Hold(cut.Up, cut.Down)
	if end := <-ended; end.Code != nodelink.CodeLinkLost {
		t.Errorf("%+v", end)
	}
	await(t, "it is fenced", func() bool { return len(c.lost()) == 1 })
	if got := c.lost()[0]; got != fsm.ReasonHeartbeat {
		t.Error(got)
	}
	<-h.stopped // the node noticed the silence as well
	p.Pass()    // what was held arrives now, and the node may come back
	ready(t, c, "n1", 2)
	g2 := c.admit(t, "r2")
	if g2.Generation != 2 {
		t.Fatalf("%+v", g2)
	}
	if got := c.lost(); len(got) != 1 {
		t.Error("the old link's late end was commanded:", got)
	}
	if v := c.node("n1"); !v.Connected || v.Generation != 2 || c.inFlight() != 1 {
		t.Errorf("%+v, in flight %d", v, c.inFlight())
	}
}

func TestTheLossIsCommandedUntilItHasAnOutcome(t *testing.T) {
	w := newWorld(t, words("ok"))
	w.c.mu.Lock()
	w.c.refuse = 3
	w.c.mu.Unlock()
	w.n.stop(t)
	await(t, "it is fenced", func() bool { return !w.c.node("n1").Connected && len(w.c.lost()) == 1 })
}

func TestLinkFencedByTheMachine(t *testing.T) {
	w := newWorld(t, words("ok"))
	w.c.apply(w.c.session, &fsm.LinkLost{Node: "n1", Generation: 1, Reason: fsm.ReasonRemoved})
	ready(t, w.c, "n1", 2)
	if got := w.c.lost(); len(got) != 0 {
		t.Error("commanded again:", got)
	}
	if !w.n.states.told("removed") {
		t.Error("the node does not know why")
	}
}

func TestEndedSessionEndsAllLinks(t *testing.T) {
	w := newWorld(t, words("ok"))
	w.c.apply(0, &fsm.EndSession{Edge: edgeID, Session: w.c.session, Reason: fsm.ReasonSessionEnded})
	await(t, "the link is gone", func() bool { return w.e.counts.get("down n1 session_ended") == 1 })
	await(t, "nobody registers without a session", func() bool { return w.e.counts.get("refused unavailable") > 0 })
}

// Nothing of a grant may be lost or doubled while links break all the time.
func TestLinksThatBreakAllTheTime(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	var inside atomic.Int32
	startNode(t, p.Address(), "n1", &hands{run: func(ctx context.Context, r *edgelink.Run, a edgelink.Answer) edgelink.End {
		inside.Add(1)
		defer inside.Add(-1)
		return words("a", "b", "c")(ctx, r, a)
	}}, nil)
	ready(t, c, "n1", 1)
	var complete int
	for round := range 10 {
		next := make(chan nodelink.End)
		for i := range 8 {
			out := c.apply(c.session, &fsm.Admit{Request: fsm.RequestID(fmt.Sprint(round, ".", i)), Model: model})
			go func() {
				if out.Code != fsm.Granted {
					next <- nodelink.End{}
					return
				}
				a := &answer{}
				end := e.links.Exchange(t.Context(), request(out.Grant, "{}"), a)
				if end.Complete && a.text() != "abc" {
					t.Errorf("a clean end with %q", a.text())
				}
				c.release(out.Grant)
				next <- end
			}()
			if i == 4 {
				if end := <-next; end.Complete {
					complete++
				}
				p.Cut()
			}
		}
		for range 7 {
			if end := <-next; end.Complete {
				complete++
			}
		}
		ready(t, c, "n1", fsm.Generation(round+2))
		for _, r := range c.waiting() {
			c.apply(c.session, &fsm.Cancel{Request: r})
		}
	}
	await(t, "all is given back", func() bool { return inside.Load() == 0 })
	for _, g := range c.held() {
		c.release(g) // granted to waiters of a round that did not want them any more
	}
	if c.inFlight() != 0 || complete == 0 {
		t.Error("in flight", c.inFlight(), "complete", complete)
	}
}
