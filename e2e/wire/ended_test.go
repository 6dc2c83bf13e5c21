package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
)

// two are two edges of one cluster, and a node that is linked to both. deaf: the first hears no effects, as an edge that
// lost its quorum.
type two struct {
	c      *cluster
	e1, e2 *edge
	c2     *second
	runs   *edgelink.Runs
	h      *steady
	deaf   atomic.Bool
}

// steady is a backend that says pieces when it is told to, and stops when it is.
type steady struct {
	began   chan struct{}
	piece   chan string // "" ends it
	stopped chan struct{}
}

func newSteady() *steady {
	return &steady{began: make(chan struct{}, 16), piece: make(chan string, 16), stopped: make(chan struct{}, 16)}
}

func (h *steady) run(ctx context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
	err := a.Head(200, nil)
	h.began <- struct{}{}
	for err == nil {
		select {
		case p := <-h.piece:
			if p == "" {
				return edgelink.End{Dispatched: edgelink.DispatchedYes}
			}
			err = a.Data([]byte(p))
		case <-ctx.Done():
			h.stopped <- struct{}{}
			return edgelink.End{Dispatched: edgelink.DispatchedYes, Code: "canceled"}
		}
	}
	return edgelink.End{Dispatched: edgelink.DispatchedYes, Code: "backend_broke"}
}

func newTwo(t *testing.T) *two {
	t.Helper()
	w := &two{c: newCluster(t, "n1"), runs: edgelink.NewRuns(), h: newSteady()}
	w.e1 = startEdge(t, w.c, nil)
	w.c2 = &second{cluster: w.c, session: w.c.apply(0, &fsm.OpenSession{Edge: "edge-2", Nonce: 8}).Session}
	w.e2 = startEdge(t, w.c, func(o *nodelink.Options) { o.Commands, o.Edge, o.Fenced = w.c2, "edge-2", w.c.fenced })
	w.c.mu.Lock()
	w.c.effects = func(es []fsm.Effect) {
		w.tell(w.e1, edgeID, es)
		w.tell(w.e2, "edge-2", es)
	}
	w.c.mu.Unlock()
	return w
}

// tell hands on what storage would: every fence, and what is the edge's own.
func (w *two) tell(e *edge, id fsm.EdgeID, es []fsm.Effect) {
	if e == w.e1 && w.deaf.Load() {
		return
	}
	for i := range es {
		if es[i].Kind == fsm.EffectLinkFenced || es[i].Edge == id {
			e.links.Effects(es[i : i+1])
		}
	}
}

func (w *two) node(t *testing.T, e *edge) *node {
	t.Helper()
	return startNode(t, e.address, "n1", &hands{run: w.h.run}, func(o *edgelink.Options) { o.Runs = w.runs })
}

// linked waits until just so many links of the node are ready.
func (w *two) linked(t *testing.T, ready int) {
	t.Helper()
	await(t, fmt.Sprint(ready, " links are ready"), func() bool {
		n := 0
		for _, l := range w.c.node("n1").Links {
			if l.State == fsm.LinkReady {
				n++
			}
		}
		return n == ready
	})
}

// exchange starts a run over e1.
func (w *two) exchange(t *testing.T, g fsm.Grant) (*answer, <-chan nodelink.End) {
	a, end := &answer{}, make(chan nodelink.End, 1)
	go func() { end <- w.e1.links.Exchange(t.Context(), request(g, "{}"), a) }()
	<-w.h.began
	return a, end
}

func (w *two) endSession(t *testing.T) {
	t.Helper()
	if o := w.c.apply(0, &fsm.EndSession{Edge: edgeID, Session: w.c.session, Reason: fsm.ReasonSessionEnded}); o.Code != fsm.Done {
		t.Fatal(o.Code)
	}
}

// reports of that generation that were said over e2.
func (w *two) reports(g fsm.Generation) (list [][]fsm.LeaseID) {
	for _, cmd := range w.c2.commands() {
		if r, ok := cmd.(*fsm.LinkReport); ok && r.Generation == g {
			list = append(list, r.Running)
		}
	}
	return list
}

// counts that all is back: each lease was returned once, or the machine would have panicked.
func (w *two) settled(t *testing.T) {
	t.Helper()
	await(t, "every lease is returned", func() bool { return w.c.inFlight() == 0 })
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if err := w.c.m.Check(); err != nil {
		t.Error(err)
	}
	if s := w.c.m.Snapshot(); s.Granted != s.Returned {
		t.Errorf("granted %d, returned %d", s.Granted, s.Returned)
	}
}

// An edge that lost its quorum serves its stream to the end: its node hears over the other link that the session ended,
// takes nothing new for it, goes on, and reports what runs until it has ended.
func TestStreamOfAMinorityEdgeLivesAndIsCounted(t *testing.T) {
	w := newTwo(t)
	w.node(t, w.e1)
	ready(t, w.c, "n1", 1)
	w.node(t, w.e2)
	w.linked(t, 2)
	g, g2 := w.c.admit(t, "r1"), w.c.admit(t, "r2")
	a, end := w.exchange(t, g)
	w.h.piece <- "one"
	w.deaf.Store(true)
	w.endSession(t)
	await(t, "the node reports the run over the other link, again and again", func() bool {
		n := 0
		for _, running := range w.reports(g.Generation) {
			if slices.Equal(running, []fsm.LeaseID{g.Lease}) {
				n++
			}
		}
		return n > 2
	})
	if w.c.inFlight() != 1 {
		t.Error("in flight:", w.c.inFlight(), "want the one that runs; the other was never dispatched, and returned by the report")
	}
	if e := w.e1.links.Exchange(t.Context(), request(g2, "{}"), &answer{}); e.Dispatched != nodelink.DispatchedNo {
		t.Errorf("a dispatch over the link that has ended: %+v", e)
	}
	w.h.piece <- "two"
	w.h.piece <- ""
	if e := <-end; !e.Complete || a.text() != "onetwo" {
		t.Errorf("%+v %q", e, a.text())
	}
	w.settled(t)
	if len(w.h.stopped) != 0 {
		t.Error("it was canceled")
	}
}

// An edge that was away opens a new session: its node registers anew beside the old transport, which carries its run to the
// end and is closed then. The lease counts until then, once.
func TestEdgeThatOpensANewSessionKeepsItsStreams(t *testing.T) {
	w := newTwo(t)
	n := w.node(t, w.e1)
	ready(t, w.c, "n1", 1)
	w.node(t, w.e2)
	w.linked(t, 2)
	g := w.c.admit(t, "r1")
	a, end := w.exchange(t, g)
	w.h.piece <- "one"
	w.c.mu.Lock()
	out := w.c.applyLocked(0, &fsm.OpenSession{Edge: edgeID, Nonce: 99})
	w.c.session, w.c.seq = out.Session, 0
	w.c.mu.Unlock()
	w.linked(t, 2) // a new one beside it
	if w.c.inFlight() != 1 {
		t.Error("in flight:", w.c.inFlight())
	}
	next := w.c.admit(t, "r2")
	if next.Generation <= g.Generation {
		t.Fatalf("granted over generation %d", next.Generation)
	}
	b, end2 := w.exchange(t, next)
	w.h.piece <- "two" // one of the two takes it
	w.h.piece <- ""
	w.h.piece <- ""
	first, second := <-end, <-end2
	if !first.Complete || !second.Complete || len(a.text())+len(b.text()) != len("onetwo") || !strings.HasPrefix(a.text(), "one") {
		t.Errorf("%+v %q, %+v %q", first, a.text(), second, b.text())
	}
	for _, lease := range []fsm.LeaseID{g.Lease, next.Lease} {
		w.c.apply(w.c.session, &fsm.Release{Lease: lease, Reason: fsm.ReasonDone})
	}
	w.settled(t)
	await(t, "the old transport is closed", func() bool { return w.e1.counts.get("down n1 session_ended") == 1 })
	if len(w.h.stopped) != 0 {
		t.Error("a run was canceled")
	}
	if got := w.e1.counts.get("up n1"); got != 2 {
		t.Error("registrations:", got)
	}
	n.stop(t)
}

// S3: the machine took the lease back, for the node had no other link, and the node does not know. It names the run when
// it registers elsewhere, and ends it before it is ready.
func TestUncountedRunOfALivingLinkEndsBeforeReady(t *testing.T) {
	w := newTwo(t)
	w.node(t, w.e1)
	ready(t, w.c, "n1", 1)
	g := w.c.admit(t, "r1")
	_, end := w.exchange(t, g)
	w.deaf.Store(true)
	w.endSession(t)
	if w.c.inFlight() != 0 {
		t.Fatal("it is still counted")
	}
	w.node(t, w.e2)
	<-w.h.stopped
	ready(t, w.c, "n1", 2)
	if e := <-end; e.Complete {
		t.Errorf("%+v", e)
	}
	if !slices.ContainsFunc(w.c2.commands(), func(cmd fsm.Command) bool {
		r, ok := cmd.(*fsm.RegisterNode)
		return ok && slices.Equal(r.Running, []fsm.LeaseID{g.Lease})
	}) {
		t.Error("the registration does not name it")
	}
	w.settled(t)
}

// A held lease of a living link is named and counted, so it goes on when the node registers with another edge.
func TestRunsOfALivingLinkOutliveARegistrationElsewhere(t *testing.T) {
	w := newTwo(t)
	w.node(t, w.e1)
	ready(t, w.c, "n1", 1)
	g := w.c.admit(t, "r1")
	a, end := w.exchange(t, g)
	w.node(t, w.e2)
	w.linked(t, 2)
	w.h.piece <- "all"
	w.h.piece <- ""
	if e := <-end; !e.Complete || a.text() != "all" {
		t.Errorf("%+v %q", e, a.text())
	}
	w.c.release(g)
	w.settled(t)
}

// A link that is being registered while another of its node is fenced is told so, though the effect came before it was there.
func TestFenceThatCrossesARegistrationIsTold(t *testing.T) {
	w := newTwo(t)
	w.node(t, w.e1)
	ready(t, w.c, "n1", 1)
	g := w.c.admit(t, "r1")
	_, end := w.exchange(t, g)
	w.deaf.Store(true)
	w.c2.after = func(cmd fsm.Command) { // in one step with the registration, in front of its outcome
		if _, ok := cmd.(*fsm.RegisterNode); ok {
			w.c.seq, w.c2.seq = w.c2.seq, w.c.seq
			w.c.applyLocked(0, &fsm.EndSession{Edge: edgeID, Session: w.c.session, Reason: fsm.ReasonSessionEnded})
			w.c.seq, w.c2.seq = w.c2.seq, w.c.seq
		}
	}
	w.node(t, w.e2)
	await(t, "the node reports the run", func() bool { return len(w.reports(g.Generation)) > 0 })
	if w.c.inFlight() != 1 {
		t.Error("in flight:", w.c.inFlight())
	}
	w.h.piece <- ""
	<-end
	w.settled(t)
}
