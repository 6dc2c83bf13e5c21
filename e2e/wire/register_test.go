package wire

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
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
	e := startEdge(t, c, func(o *nodelink.Options) { o.HeartbeatInterval, o.PingWait = time.Hour, 200*time.Millisecond })
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	startNode(t, p.Address(), "n1", &hands{run: words("old")}, func(o *edgelink.Options) { o.DialTimeout = 200 * time.Millisecond })
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
	first := startNode(t, p.Address(), "n1", &hands{run: words("old")}, share)
	ready(t, c, "n1", 1)
	p.Swallow(cut.Up, cut.Down)
	first.stop(t)
	startNode(t, e.address, "n1", &hands{run: words("new")}, share)
	ready(t, c, "n1", 2)
	p.Refuse(true)
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

// A node whose list names the same edge twice does not throw itself out: the second address waits until the first is gone.
func TestTwoAddressesOfOneEdge(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	runs := edgelink.NewRuns()
	share := func(o *edgelink.Options) { o.Runs = runs }
	first := startNode(t, e.address, "n1", &hands{run: words("ok")}, share)
	ready(t, c, "n1", 1)
	startNode(t, p.Address(), "n1", &hands{run: words("ok")}, share)
	await(t, "the second has asked", func() bool { _, _, total := p.Connections(); return total > 0 })
	for i := range 20 {
		if end := e.links.Exchange(t.Context(), request(c.admit(t, fmt.Sprint("r", i)), "{}"), &answer{}); !end.Complete {
			t.Fatalf("%+v", end)
		}
	}
	if v := c.node("n1"); v.Generation != 1 {
		t.Errorf("%+v", v)
	}
	first.stop(t)
	ready(t, c, "n1", 2)
}
