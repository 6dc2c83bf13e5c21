package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"iop/fsm"
)

// TestEffectsComeInOrder: a grant reaches the session after the outcome that queued the request, each exactly once.
func TestEffectsComeInOrder(t *testing.T) {
	s := openAt(t, t.TempDir())
	var mu sync.Mutex
	var story []string
	done := make(chan struct{})
	const n = 50
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if story = append(story, fmt.Sprintf(format, args...)); len(story) == 3*n+1 {
			close(done)
		}
	}
	var x *Session
	release := func(g fsm.Grant) {
		x.Propose(&fsm.Release{Lease: g.Lease, Reason: fsm.ReasonDone}, funcReceiver(func(o fsm.Outcome, err error) {
			note("released %s %v %v", g.Request, o.Code, err)
		}))
	}
	x = running(t, s, world(1, 1), func(effects []fsm.Effect) {
		for _, e := range effects {
			note("granted %s", e.Grant.Request)
			release(e.Grant)
		}
	})
	first := must(t, x, admit("first"), fsm.Granted)
	for i := range n {
		id := fmt.Sprint("r", i)
		x.Propose(admit(id), funcReceiver(func(o fsm.Outcome, err error) { note("%v %s %v", o.Code, id, err) }))
	}
	must(t, x, &fsm.Cancel{Request: "none"}, fsm.Unknown) // all are queued
	release(first.Grant)
	select {
	case <-done:
	case <-time.After(long):
		t.Fatal(story)
	}
	mu.Lock()
	defer mu.Unlock()
	at := func(what string) int { return slices.Index(story, what) }
	for i := range n {
		queued, granted := at(fmt.Sprintf("queued r%d <nil>", i)), at(fmt.Sprintf("granted r%d", i))
		released := at(fmt.Sprintf("released r%d returned <nil>", i))
		if queued < 0 || granted < queued || released < granted || i > 0 && granted < at(fmt.Sprintf("granted r%d", i-1)) {
			t.Fatalf("r%d: queued at %d, granted at %d, released at %d in %q", i, queued, granted, released, story)
		}
	}
}

// TestEffectsOfOthersStayAway: a session is told only what is its own.
func TestEffectsOfOthersStayAway(t *testing.T) {
	s := openAt(t, t.TempDir())
	mine, other := newCollector(), newCollector()
	x := running(t, s, world(1, 1), mine.take)
	y, err := s.OpenSession(within(t), "e2", other.take)
	if err != nil {
		t.Fatal(err)
	}
	g := must(t, x, admit("a"), fsm.Granted)
	must(t, x, admit("b"), fsm.Queued)
	must(t, x, &fsm.Release{Lease: g.Grant.Lease}, fsm.Returned)
	if e := mine.wait(t, 1); e[0].Kind != fsm.EffectGranted || e[0].Grant.Request != "b" {
		t.Errorf("%+v", e)
	}
	must(t, y, &fsm.Cancel{Request: "none"}, fsm.Unknown)
	if len(other.list) != 0 {
		t.Errorf("the other session was told %+v", other.list)
	}
}

// TestFencesAreHeardByAll: a link that another edge lost is told to every session, as its node hears of it only so.
func TestFencesAreHeardByAll(t *testing.T) {
	s := openAt(t, t.TempDir())
	x := running(t, s, world(1, 1), nil)
	other := newCollector()
	if _, err := s.OpenSession(within(t), "e2", other.take); err != nil {
		t.Fatal(err)
	}
	must(t, x, &fsm.LinkLost{Node: "n1", Generation: 1, Reason: fsm.ReasonHeartbeat}, fsm.Done)
	if e := other.wait(t, 1)[0]; e.Kind != fsm.EffectLinkFenced || e.Node != "n1" || e.Generation != 1 || e.Edge != "e1" {
		t.Errorf("told %+v", e)
	}
}

// TestNewSessionEndsTheOldOne: the old one is told, and refuses what comes then.
func TestNewSessionEndsTheOldOne(t *testing.T) {
	s := openAt(t, t.TempDir())
	c := newCollector()
	x := running(t, s, world(1, 1), c.take)
	g := must(t, x, admit("a"), fsm.Granted)
	y, err := s.OpenSession(within(t), "e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []fsm.EffectKind
	for _, e := range c.wait(t, 3) {
		kinds = append(kinds, e.Kind)
	}
	if !slices.Contains(kinds, fsm.EffectSessionEnded) || !slices.Contains(kinds, fsm.EffectReturned) || !slices.Contains(kinds, fsm.EffectLinkFenced) {
		t.Errorf("told %v", kinds)
	}
	if _, err := x.Do(within(t), &fsm.Release{Lease: g.Grant.Lease}); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("old session: %v", err)
	}
	if y.ID() <= x.ID() {
		t.Errorf("sessions %d, %d", x.ID(), y.ID())
	}
}

func TestSessionEnd(t *testing.T) {
	s := openAt(t, t.TempDir())
	c := newCollector()
	x := running(t, s, world(1, 1), c.take)
	outcomes := make(chan received, 100)
	for i := range cap(outcomes) {
		x.Propose(admit(fmt.Sprint(i)), funcReceiver(func(o fsm.Outcome, err error) { outcomes <- received{o, err} }))
	}
	if err := x.End(within(t), fsm.ReasonGoodbye); err != nil {
		t.Fatal(err)
	}
	for range cap(outcomes) {
		if r := <-outcomes; r.err != nil {
			t.Errorf("proposed before the end: %v", r.err)
		}
	}
	if _, err := x.Do(within(t), admit("late")); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("proposed after the end: %v", err)
	}
	if err := x.End(within(t), fsm.ReasonGoodbye); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("ended again: %v", err)
	}
	s.View(func(m *fsm.Machine) {
		if _, ok := m.CurrentSession("e1"); ok {
			t.Error("the machine still has it")
		}
	})
	checked(t, s)
}

// TestOverdueWaiterEnds: the leader proposes the expiry itself.
func TestOverdueWaiterEnds(t *testing.T) {
	s := openAt(t, t.TempDir())
	c := newCollector()
	x := running(t, s, world(1, 1), c.take)
	must(t, x, admit("a"), fsm.Granted)
	b := admit("b")
	b.MaxWait = 30 * fsm.Millisecond
	must(t, x, b, fsm.Queued)
	if e := c.wait(t, 1)[0]; e.Kind != fsm.EffectEnded || e.Request != "b" || e.Refusal != fsm.RefusalQueueTimeout {
		t.Errorf("%+v", e)
	}
}

// TestNothingExpiresWhileStopped: cluster time stands still between two lives.
func TestNothingExpiresWhileStopped(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 1), nil)
	must(t, x, admit("a"), fsm.Granted)
	must(t, x, admit("b"), fsm.Queued)
	var before fsm.Time
	s.View(func(m *fsm.Machine) { before = m.Now() })
	closeStore(t, s)
	s = openAt(t, dir)
	y, err := s.OpenSession(within(t), "e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	must(t, y, &fsm.Cancel{Request: "none"}, fsm.Unknown)
	s.View(func(m *fsm.Machine) {
		if now := m.Now(); now < before || now > before+fsm.Time(long) {
			t.Errorf("cluster time went from %d to %d", before, now)
		}
		if r, ok := m.Request("b"); !ok || r.State != fsm.StateDetached {
			t.Errorf("the waiter is %+v", r)
		}
	})
}

func TestCloseAnswersEverybody(t *testing.T) {
	s := openAt(t, t.TempDir())
	x := running(t, s, world(1, 1000), nil)
	var wait sync.WaitGroup
	var mu sync.Mutex
	errs := map[error]int{}
	for i := range 2000 {
		wait.Add(1)
		go x.Propose(admit(fmt.Sprint(i)), funcReceiver(func(o fsm.Outcome, err error) {
			mu.Lock()
			errs[err]++
			mu.Unlock()
			wait.Done()
		}))
	}
	closeStore(t, s)
	wait.Wait()
	if errs[nil]+errs[ErrClosed] != 2000 {
		t.Errorf("answers: %v", errs)
	}
	if _, err := x.Do(within(t), admit("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if s.Role() != RoleStopped {
		t.Errorf("role %v", s.Role())
	}
}

func TestDoGivesUpWithItsContext(t *testing.T) {
	s := openAt(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Do(ctx, world(1, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTooLargeIsRefused(t *testing.T) {
	s := openAt(t, t.TempDir())
	c := world(1, 1)
	c.Document = make([]byte, commandMax+1)
	if _, err := s.Do(within(t), c); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	c.Document = make([]byte, commandMax/2)
	if o, err := s.Do(within(t), c); err != nil || o.Code != fsm.Applied {
		t.Errorf("%v %v", o.Code, err)
	}
}

// TestWatchersWhoNeverRead change nothing: 1,000 of them, and all goes on in order.
func TestWatchersWhoNeverRead(t *testing.T) {
	s := openAt(t, t.TempDir())
	c := newCollector()
	x := running(t, s, world(1, 1), c.take)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 1000 {
		s.Watch(ctx, 2)
	}
	reader := s.Watch(ctx, 1000)
	g := must(t, x, admit("r0"), fsm.Granted)
	const n = 200
	for i := 1; i <= n; i++ {
		must(t, x, admit(fmt.Sprint("r", i)), fsm.Queued)
		must(t, x, &fsm.Release{Lease: g.Grant.Lease}, fsm.Returned)
		g.Grant = c.wait(t, i)[i-1].Grant
		if want := fsm.RequestID(fmt.Sprint("r", i)); g.Grant.Request != want {
			t.Fatalf("granted %s, want %s", g.Grant.Request, want)
		}
	}
	for i := 1; i <= n; i++ {
		if e := <-reader; e.Grant.Request != fsm.RequestID(fmt.Sprint("r", i)) {
			t.Fatalf("the one who reads got %+v as number %d", e, i)
		}
	}
	cancel()
	for range reader {
		t.Error("another effect")
	}
}
