package nodelink

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

func TestExchangeWithoutALink(t *testing.T) {
	e := startEdge(t, nil)
	end := e.Exchange(t.Context(), &Exchange{Grant: fsm.Grant{Node: "n", Generation: 1}, Method: "POST", Path: "/"}, nothing{})
	if end.Code != CodeLinkLost || end.Dispatched != DispatchedNo {
		t.Errorf("%+v", end)
	}
}

func TestExchangeWithoutADataConnection(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.ConnectWait = 30 * time.Millisecond })
	r := dialRough(t, e).link()
	end := e.Exchange(t.Context(), r.exchange(), nothing{})
	if end.Code != CodeNoConnection || end.Dispatched != DispatchedNo {
		t.Errorf("%+v", end)
	}
	f, err := r.st.Recv()
	if err != nil || f.GetNeedConnections().GetCount() == 0 {
		t.Errorf("the node was not asked: %v %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if end := e.Exchange(ctx, r.exchange(), nothing{}); end.Code != CodeCanceled || end.Dispatched != DispatchedNo {
		t.Errorf("%+v", end)
	}
	if st := e.Status()[0]; st.Runs != 0 || st.Busy != 0 {
		t.Errorf("%+v", st)
	}
}

func TestCanceledRunWhoseEndIsNeverTold(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.FenceTimeout = 50 * time.Millisecond })
	r := dialRough(t, e).link()
	r.data(r.proof())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan End, 1)
	go func() { ended <- e.Exchange(ctx, r.exchange(), nothing{}) }()
	await(t, "it runs", func() bool { return e.Status()[0].Runs == 1 })
	cancel()
	if c := r.next().GetCancel(); c.GetRun() != 1 {
		t.Error(c)
	}
	if end := <-ended; end.Code != CodeCanceled || end.Dispatched != DispatchedUnknown {
		t.Errorf("%+v", end)
	}
	// It comes late, and once more, and of runs that never were.
	for _, run := range []uint64{1, 1, 99} {
		r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: &nodepb.RunEnded{Run: run, Lease: 5, Dispatched: "yes"}}})
	}
	await(t, "they are dropped and counted", func() bool { return e.tally.dropped("run_ended") == 3 })
	if st := e.Status()[0]; st.Runs != 0 || st.Busy != 0 || !st.Ready {
		t.Errorf("%+v", st)
	}
}

// RunEnded names run and lease: another lease's end is not this one's.
func TestRunEndedOfAnotherLease(t *testing.T) {
	e := startEdge(t, nil)
	r := dialRough(t, e).link()
	c, _ := r.data(r.proof())
	ended := make(chan End, 1)
	go func() { ended <- e.Exchange(t.Context(), r.exchange(), nothing{}) }()
	await(t, "it runs", func() bool { return e.Status()[0].Runs == 1 })
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: &nodepb.RunEnded{Run: 1, Lease: 6}}})
	await(t, "it is dropped", func() bool { return e.tally.dropped("run_ended") == 1 })
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: &nodepb.RunEnded{
		Run: 1, Lease: 5, Dispatched: "yes", Code: "backend_broke", Message: "reset",
	}}})
	_ = c.Close()
	if end := <-ended; end != (End{Dispatched: DispatchedYes, Code: "backend_broke", Message: "reset"}) {
		t.Errorf("%+v", end)
	}
}

// A dead data connection of a run that the node never saw is no reason to fail, but not to try for ever either.
func TestUnseenRunsAreTriedAnew(t *testing.T) {
	e := startEdge(t, nil)
	r := dialRough(t, e).link()
	ended := make(chan End, 1)
	go func() { ended <- e.Exchange(t.Context(), r.exchange(), nothing{}) }()
	e.mu.Lock()
	k := e.links["n"]
	e.mu.Unlock()
	for try := range tries {
		await(t, "it waits for a connection", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return len(k.pool.waiters) == 1 })
		c, _ := r.data(r.proof())
		await(t, "it runs", func() bool { return e.Status()[0].Runs == 1 })
		_ = c.Close()
		cancel := r.next().GetCancel()
		if cancel.GetRun() != uint64(try+1) {
			t.Fatal("a run number was used twice:", cancel)
		}
		r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_RunEnded{RunEnded: &nodepb.RunEnded{
			Run: cancel.Run, Dispatched: "no", Code: CodeCanceled, Unseen: true,
		}}})
	}
	if end := <-ended; end.Code != CodeNoConnection || end.Dispatched != DispatchedNo {
		t.Errorf("%+v", end)
	}
}

func TestNodeThatDoesNotReadIsFenced(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.HeartbeatInterval, o.HeartbeatMissed = 20*time.Millisecond, 5 })
	r := dialRough(t, e).link()
	payload := &nodepb.NodeConfigPayload{Adapters: []*nodepb.AdapterConfig{{Id: strings.Repeat("x", 1<<20)}}}
	e.Push(1, func(fsm.NodeID) *nodepb.NodeConfigPayload { return payload })
	await(t, "it is fenced although it beats", func() bool {
		_ = r.st.Send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Heartbeat{Heartbeat: &nodepb.Heartbeat{}}})
		return slices.Equal(e.y.lost(), []fsm.Reason{fsm.ReasonHeartbeat})
	})
}

// The machine's fence can arrive before the registration's own outcome.
func TestFencedBeforeItIsThere(t *testing.T) {
	e := startEdge(t, nil)
	e.y.registered = func(g fsm.Generation) {
		e.Effects([]fsm.Effect{{Kind: fsm.EffectLinkFenced, Node: "n", Generation: g, Reason: fsm.ReasonRemoved}})
	}
	r := dialRough(t, e)
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: registration()}})
	for {
		if _, err := r.st.Recv(); err != nil {
			break // closed
		}
	}
	await(t, "no link is left", func() bool { return len(e.Status()) == 0 })
	if got := e.y.lost(); len(got) != 0 {
		t.Error(got)
	}
}

// The node closes while its registration is on its way through the log: what the machine made of it is undone.
func TestNodeLeavesDuringItsRegistration(t *testing.T) {
	e := startEdge(t, nil)
	gone := make(chan struct{})
	e.y.registered = func(fsm.Generation) { <-gone }
	r := dialRough(t, e)
	r.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Register{Register: registration()}})
	_ = r.st.CloseSend()
	close(gone)
	await(t, "it is fenced", func() bool { return slices.Equal(e.y.lost(), []fsm.Reason{fsm.ReasonLinkLost}) })
}

func TestFramesOfAnOldLinkAreDropped(t *testing.T) {
	e := startEdge(t, nil)
	dialRough(t, e).link()
	e.mu.Lock()
	k := e.links["n"]
	e.mu.Unlock()
	k.lose(fsm.ReasonSuperseded, false, true)
	k.handle(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Health{Health: &nodepb.Health{Provider: "p", State: nodepb.Health_STATE_DEGRADED}}})
	await(t, "the link is gone", func() bool { return len(e.Status()) == 0 })
	e.y.mu.Lock()
	defer e.y.mu.Unlock()
	for _, cmd := range e.y.said {
		if _, ok := cmd.(*fsm.SetHealth); ok {
			t.Error("an old link set a provider's health")
		}
	}
}

func TestLongIdleConnectionsAreClosed(t *testing.T) {
	e := startEdge(t, func(o *Options) {
		o.HeartbeatInterval, o.HeartbeatMissed, o.IdleTimeout, o.SpareConnections = 10*time.Millisecond, 100000, time.Millisecond, 2
	})
	r := dialRough(t, e).link()
	for range 10 {
		r.data(r.proof())
	}
	await(t, "the spare ones are left", func() bool { return e.Status()[0].Idle == 2 })
}

func TestMaxConnections(t *testing.T) {
	e := startEdge(t, func(o *Options) { o.MaxConnections = 3 })
	r := dialRough(t, e).link()
	for i := range 5 {
		c, ok := r.data(r.proof())
		if !ok {
			t.Fatal("refused")
		}
		if i >= 3 {
			closed(t, c)
			continue
		}
		await(t, "it is kept", func() bool { return e.Status()[0].Idle == i+1 })
	}
}

func TestTheEdgesStopWaitsForNothingOfANode(t *testing.T) {
	e := startEdge(t, nil)
	r := dialRough(t, e).link()
	r.data(r.proof())
	ended := make(chan End, 1)
	go func() { ended <- e.Exchange(context.Background(), r.exchange(), nothing{}) }()
	await(t, "it runs", func() bool { return e.Status()[0].Runs == 1 })
	e.stop()
	if end := <-ended; end.Code != CodeLinkLost {
		t.Errorf("%+v", end)
	}
}
