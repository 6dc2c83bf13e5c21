package wire

import (
	"context"
	"slices"
	"testing"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
)

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
	after   func(fsm.Command) // under the lock, before the outcome is known; may be nil
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
	out := s.applyLocked(s.session, cmd)
	if s.after != nil {
		s.after(cmd)
	}
	return out, nil
}

func (s *second) commands() []fsm.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mine)
}
