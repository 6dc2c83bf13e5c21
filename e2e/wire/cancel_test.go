package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"iop/e2e/cut"
	"iop/edged/nodelink"
	"iop/fsm"
	"iop/noded/edgelink"
)

// hanging is a backend that answers nothing (or only a head) until its context ends, and then takes until release.
type hanging struct {
	began   chan struct{}
	stopped chan struct{}
	release chan struct{}
	head    bool
}

func newHanging(head bool) *hanging {
	return &hanging{began: make(chan struct{}, 16), stopped: make(chan struct{}, 16), release: make(chan struct{}), head: head}
}

func (h *hanging) run(ctx context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
	if h.head {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		_ = a.Data([]byte("first"))
	}
	h.began <- struct{}{}
	<-ctx.Done()
	h.stopped <- struct{}{}
	<-h.release
	return edgelink.End{Dispatched: edgelink.DispatchedYes, Code: "canceled"}
}

func TestCancelWaitsForTheBackendsEnd(t *testing.T) {
	for _, head := range []bool{false, true} {
		t.Run(fmt.Sprint("head=", head), func(t *testing.T) {
			h := newHanging(head)
			w := newWorld(t, h.run)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan nodelink.End, 1)
			g := w.c.admit(t, "r1")
			go func() { ended <- w.e.links.Exchange(ctx, request(g, "{}"), &answer{}) }()
			<-h.began
			cancel()
			<-h.stopped
			select {
			case end := <-ended:
				t.Fatalf("it ended before the backend: %+v", end)
			default:
			}
			close(h.release)
			if end := <-ended; end.Code != nodelink.CodeCanceled || end.Dispatched != nodelink.DispatchedYes || end.Complete {
				t.Errorf("%+v", end)
			}
		})
	}
}

func TestCancelWhileTheClientDoesNotRead(t *testing.T) {
	h := newHanging(true)
	close(h.release)
	w := newWorld(t, h.run)
	ctx, cancel := context.WithCancel(t.Context())
	a := &answer{onData: func([]byte) error { <-ctx.Done(); return errors.New("the client is gone") }}
	ended := make(chan nodelink.End, 1)
	g := w.c.admit(t, "r1")
	go func() { ended <- w.e.links.Exchange(ctx, request(g, "{}"), a) }()
	<-h.began
	cancel()
	<-h.stopped
	if end := <-ended; end.Code != nodelink.CodeCanceled {
		t.Errorf("%+v", end)
	}
}

func TestAnswerThatFailsCancelsTheRun(t *testing.T) {
	h := newHanging(true)
	close(h.release)
	w := newWorld(t, h.run)
	a := &answer{onData: func([]byte) error { return errors.New("broken pipe") }}
	end := w.e.links.Exchange(t.Context(), request(w.c.admit(t, "r1"), "{}"), a)
	<-h.stopped
	if end.Code != nodelink.CodeAnswerFailed || end.Dispatched != nodelink.DispatchedYes || end.Message != "broken pipe" {
		t.Errorf("%+v", end)
	}
}

// A cancel at every moment of a run's life leaves neither a run nor a busy connection.
func TestCancelRacesStartAndEnd(t *testing.T) {
	w := newWorld(t, words("a", "b"))
	var all sync.WaitGroup
	for i := range 400 {
		g := w.c.admit(t, fmt.Sprint("r", i))
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			a := &answer{}
			switch i % 4 {
			case 0:
				go cancel()
			case 1:
				a.onHead = func() error { cancel(); return nil }
			case 2:
				a.onData = func([]byte) error { cancel(); return nil }
			case 3:
				cancel()
			}
			end := w.e.links.Exchange(ctx, request(g, "{}"), a)
			cancel()
			if end.Code != "" && end.Code != nodelink.CodeCanceled {
				t.Errorf("%d: %+v", i, end)
			}
			if end.Code == "" && a.text() != "ab" {
				t.Errorf("%d: a clean end with %q", i, a.text())
			}
			if out := w.c.release(g); out.Code != fsm.Returned {
				t.Errorf("%d: %v", i, out.Code)
			}
		})
	}
	all.Wait()
	if st := w.e.links.Status(); len(st) != 1 || st[0].Generation != 1 || st[0].Runs != 0 || st[0].Busy != 0 {
		t.Errorf("%+v", st)
	}
	if n := w.c.inFlight(); n != 0 {
		t.Error("in flight", n)
	}
}

// The data connection breaks and the link stands: the run has no outcome of its own, so it is canceled and awaited.
func TestBrokenDataConnection(t *testing.T) {
	h := newHanging(true)
	close(h.release)
	c := newCluster(t, "n1")
	e := startEdge(t, c, nil)
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	startNode(t, p.Address(), "n1", &hands{run: h.run}, nil)
	ready(t, c, "n1", 1)
	p.HoldAnswerTo("first") // the data connection that carries the answer is marked as held
	g := c.admit(t, "r1")
	ended := make(chan nodelink.End, 1)
	go func() { ended <- e.links.Exchange(t.Context(), request(g, "{}"), &answer{}) }()
	<-h.began
	await(t, "the data connection is held", func() bool { _, held, _ := p.Connections(); return held == 1 })
	p.CutHeld()
	end := <-ended
	if end.Code != nodelink.CodeLinkLost || end.Dispatched != nodelink.DispatchedYes || end.Complete {
		t.Errorf("%+v", end)
	}
	if st := e.links.Status(); len(st) != 1 || st[0].Generation != 1 || !st[0].Ready {
		t.Errorf("the link did not stand: %+v", st)
	}
	<-h.stopped
}

// Idle data connections that died unnoticed are no reason to fail: the node never saw the run.
func TestDeadIdleConnectionsAreReplaced(t *testing.T) {
	c := newCluster(t, "n1")
	e := startEdge(t, c, func(o *nodelink.Options) { o.SpareConnections = 3 })
	p, err := cut.New(e.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.HoldAnswerTo("Iop-Dispatched")
	startNode(t, p.Address(), "n1", &hands{run: words("ok")}, nil)
	ready(t, c, "n1", 1)
	if end := e.links.Exchange(t.Context(), request(c.admit(t, "r1"), "{}"), &answer{}); !end.Complete {
		t.Fatalf("%+v", end)
	}
	await(t, "the connection is back", func() bool { st := e.links.Status(); return len(st) == 1 && st[0].Idle >= 1 && st[0].Busy == 0 })
	p.CutHeld() // the one that was used, and is the next to be taken
	a := &answer{}
	if end := e.links.Exchange(t.Context(), request(c.admit(t, "r2"), "{}"), a); !end.Complete || a.text() != "ok" {
		t.Errorf("%+v", end)
	}
}

func TestDeadlineEndsTheRun(t *testing.T) {
	h := newHanging(false)
	close(h.release)
	w := newWorld(t, h.run)
	x := request(w.c.admit(t, "r1"), "{}")
	x.Deadline = w.soon()
	if end := w.e.links.Exchange(t.Context(), x, &answer{}); end.Code != "canceled" || end.Dispatched != nodelink.DispatchedYes {
		t.Errorf("%+v", end)
	}
}
