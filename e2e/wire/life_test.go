package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

func TestRegistrationBringsALinkToReady(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	may := make(chan struct{})
	h := &hands{configure: func(ctx context.Context, revision uint64) error {
		if revision != 5 {
			return fmt.Errorf("revision %d", revision)
		}
		<-may
		return nil
	}, run: words("ok")}
	n := startNode(t, e.address, "n1", h, func(o *edgelink.Options) { o.Version = "1.2.3" })
	await(t, "the link is pending", func() bool { return len(c.node("n1").Links) == 1 })
	time.Sleep(5 * 100 * time.Millisecond / 4) // heartbeats go on meanwhile, though Configure takes its time
	if v := c.node("n1"); v.Connected || v.Links[0].State != fsm.LinkPending {
		t.Fatalf("%+v", v)
	}
	close(may)
	ready(t, c, "n1", 1)
	await(t, "the edge knows", func() bool { return e.links.Status()[0].Ready })
	st := e.links.Status()[0]
	if st.Version != "1.2.3" || st.Revision != 5 || st.Generation != 1 {
		t.Errorf("%+v", st)
	}
	await(t, "spare connections stand by", func() bool { return e.links.Status()[0].Idle == 8 })
	await(t, "the round trip is measured", func() bool { return e.links.Status()[0].RTT > 0 })
	await(t, "the node knows", func() bool { return n.states.had(edgelink.PhaseReady, "") })
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		code string
		id   string
		set  func(*edgelink.Options)
	}{
		{"unknown_node", "stranger", nil},
		{"wrong_token", "n1", func(o *edgelink.Options) { o.Token = "wrong" }},
		{"wrong_token", "n1", func(o *edgelink.Options) { o.Token = "" }},
	} {
		t.Run(test.code, func(t *testing.T) {
			c := newCluster(t, "n1")
			e := startEdge(t, c, nil)
			n := startNode(t, e.address, test.id, &hands{}, test.set)
			await(t, "the node is told", func() bool { return n.states.had(edgelink.PhaseRefused, test.code) })
			await(t, "it tries again", func() bool { return e.counts.get("refused "+test.code) >= 2 })
			if c.node("n1").Generation != 0 {
				t.Error("a generation was given")
			}
		})
	}
}

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

func TestDuplicateIsRefusedAndItsCloseChangesNothing(t *testing.T) {
	w := newWorld(t, words("ok"))
	other := startNode(t, w.e.address, "n1", &hands{}, nil)
	await(t, "the other process is refused", func() bool { return other.states.had(edgelink.PhaseRefused, "duplicate") })
	other.stop(t)
	if v := w.c.node("n1"); !v.Connected || v.Generation != 1 || len(w.c.lost()) != 0 {
		t.Errorf("%+v %v", v, w.c.lost())
	}
	if end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, "r1"), "{}"), &answer{}); !end.Complete {
		t.Errorf("%+v", end)
	}
}

// The old link is half open: the edge sees no close, and the node's new process is there.
func TestHalfDeadLinkIsSuperseded(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatMissed = 1000 })
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	startNode(t, p.Address(), "n1", &hands{run: words("old")}, nil)
	ready(t, c, "n1", 1)
	p.Swallow(cut.Up, cut.Down)
	startNode(t, e.address, "n1", &hands{run: words("new")}, nil)
	ready(t, c, "n1", 2)
	if got := c.lost(); len(got) != 0 {
		t.Error("superseding takes one command, and this came too:", got)
	}
	a := &answer{}
	if end := e.links.Exchange(t.Context(), request(c.admit(t, "r1"), "{}"), a); !end.Complete || a.text() != "new" {
		t.Errorf("%+v %q", end, a.text())
	}
	await(t, "the old link is gone", func() bool { return e.counts.get("down n1 superseded") == 1 })
	p.Refuse(true)
	p.CutHeld() // the old link's late close
	if v := c.node("n1"); !v.Connected || v.Generation != 2 {
		t.Errorf("%+v", v)
	}
}

// The same process comes back before the edge saw the old link end: it is believed at once, whatever the ping would say.
func TestSameInstanceSupersedesAtOnce(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval = time.Hour })
	runs := edgelink.NewRuns()
	share := func(o *edgelink.Options) { o.Runs, o.DialTimeout = runs, 200*time.Millisecond }
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	startNode(t, p.Address(), "n1", &hands{run: words("old")}, share)
	ready(t, c, "n1", 1)
	p.Swallow(cut.Up, cut.Down)
	startNode(t, e.address, "n1", &hands{run: words("new")}, share)
	ready(t, c, "n1", 2)
	p.Refuse(true)
}

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
}

func TestEndedSessionEndsAllLinks(t *testing.T) {
	w := newWorld(t, words("ok"))
	w.c.apply(0, &fsm.EndSession{Edge: edgeID, Session: w.c.session, Reason: fsm.ReasonSessionEnded})
	await(t, "the link is gone", func() bool { return w.e.counts.get("down n1 session_ended") == 1 })
	await(t, "nobody registers without a session", func() bool { return w.e.counts.get("refused unavailable") > 0 })
}

// What still runs of a lost link is named in the next registration. The machine counts none of it, since the node had
// no other link: so the node ends it before it is ready.
func TestNodeIsNotReadyWhileAnUncountedRunGoesOn(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	h := newHanging(false)
	startNode(t, p.Address(), "n1", &hands{run: h.run}, nil)
	ready(t, c, "n1", 1)
	g := c.admit(t, "r1")
	done := make(chan struct{})
	go func() { e.links.Exchange(t.Context(), request(g, "{}"), &answer{}); close(done) }()
	<-h.began
	p.Cut()
	<-h.stopped
	<-done
	await(t, "it registered with the run", func() bool {
		return slices.ContainsFunc(c.commands(), func(cmd fsm.Command) bool {
			r, ok := cmd.(*fsm.RegisterNode)
			return ok && slices.Equal(r.Running, []fsm.LeaseID{g.Lease})
		})
	})
	if v := c.node("n1"); v.Connected {
		t.Errorf("ready although the backend is busy: %+v", v)
	}
	close(h.release)
	ready(t, c, "n1", 2)
}

// With two edges, a lease of a lost link stays counted until the node reports its end over the other.
func TestReportsOverTheOtherLink(t *testing.T) {
	c := newCluster(t, "n1")
	e1 := startEdge(t, c, nil)
	p, err := cut.New(e1.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	out := c.apply(0, &fsm.OpenSession{Edge: "edge-2", Nonce: 8})
	c2 := &second{cluster: c, session: out.Session}
	e2 := startEdge(t, c, func(o *nodelink.Options) { o.Commands, o.Edge = c2, "edge-2" })
	c.mu.Lock()
	c.effects = func(es []fsm.Effect) { e1.links.Effects(es); e2.links.Effects(es) }
	c.mu.Unlock()

	h := newHanging(false)
	runs := edgelink.NewRuns()
	share := func(o *edgelink.Options) { o.Runs = runs }
	startNode(t, p.Address(), "n1", &hands{run: h.run}, share)
	ready(t, c, "n1", 1)
	startNode(t, e2.address, "n1", &hands{run: h.run}, share)
	await(t, "both links are ready", func() bool {
		n := 0
		for _, l := range c.node("n1").Links {
			if l.State == fsm.LinkReady {
				n++
			}
		}
		return n == 2
	})
	g := c.admit(t, "r1")
	done := make(chan struct{})
	go func() { e1.links.Exchange(t.Context(), request(g, "{}"), &answer{}); close(done) }()
	<-h.began
	p.Refuse(true)
	p.Cut()
	<-h.stopped
	<-done
	await(t, "the node reports what still runs", func() bool {
		return slices.ContainsFunc(c2.commands(), func(cmd fsm.Command) bool {
			r, ok := cmd.(*fsm.LinkReport)
			return ok && r.Generation == g.Generation && slices.Equal(r.Running, []fsm.LeaseID{g.Lease})
		})
	})
	if c.inFlight() != 1 {
		t.Error("the lease is not counted while the backend is busy")
	}
	close(h.release)
	await(t, "the lease is returned", func() bool { return c.inFlight() == 0 })
}

// second is the session of another edge of the same cluster.
type second struct {
	*cluster
	session fsm.SessionID
	seq     uint64
	mine    []fsm.Command
}

func (s *second) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return fsm.Outcome{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine = append(s.mine, cmd)
	s.cluster.seq, s.seq = s.seq, s.cluster.seq
	defer func() { s.cluster.seq, s.seq = s.seq, s.cluster.seq }()
	return s.applyLocked(s.session, cmd), nil
}

func (s *second) commands() []fsm.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mine)
}

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

func TestTwoNodesAreIndependent(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	e := startEdge(t, c, nil)
	n1 := startNode(t, e.address, "n1", &hands{run: words("n1")}, nil)
	startNode(t, e.address, "n2", &hands{run: words("n2")}, nil)
	ready(t, c, "n1", 1)
	ready(t, c, "n2", 1)
	n1.stop(t)
	await(t, "one is gone", func() bool { return len(c.lost()) == 1 && len(e.links.Status()) == 1 })
	a := &answer{}
	if end := e.links.Exchange(t.Context(), request(c.admit(t, "r1"), "{}"), a); !end.Complete || a.text() != "n2" {
		t.Errorf("%+v %q", end, a.text())
	}
	if d := cmp.Diff([]fsm.Reason{fsm.ReasonGoodbye}, c.lost()); d != "" {
		t.Error(d)
	}
}
