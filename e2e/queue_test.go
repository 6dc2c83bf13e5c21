package e2e

import (
	"fmt"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestQueueFull: the bound counts every waiter of every model; what is beyond is answered 429 at once and holds nothing.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.queue = 2
	w := newWorld(t, l)
	f1 := w.start(ask{tag: "running", model: "ornith:35b"})
	w.awaitLeases(1)
	f2 := w.queue(ask{tag: "first", model: "ornith:35b"}, 1)
	f3 := w.queue(ask{tag: "second", model: "ornith-fast", stream: true}, 2)
	for _, model := range []string{"ornith:35b", "ornith-fast"} {
		for _, stream := range []bool{false, true} {
			a := w.ask(ask{tag: "too many", model: model, stream: stream})
			a.wantError(t, 429, "queue_full")
			a.wantRetry(t)
		}
	}
	if n := w.pending(); n != 2 {
		t.Errorf("%d pending after the refusals", n)
	}
	f2.leave()
	w.awaitPending(1)
	f4 := w.queue(ask{tag: "third"}, 2)
	b.LetAll()
	for _, f := range []*flight{f1, f3, f4} {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	w.grants = 3
}

// TestQueueTimeout: the deadline is absolute, its end is 503 with Retry-After, and the slot is not touched.
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.timeout = 300 * time.Millisecond
	w := newWorld(t, l)
	running := w.start(ask{tag: "running"})
	w.awaitLeases(1)
	for _, stream := range []bool{false, true} {
		began := time.Now()
		a := w.ask(ask{tag: "waiting", stream: stream})
		a.wantError(t, 503, "queue_timeout")
		a.wantRetry(t)
		if waited := time.Since(began); waited < l.timeout {
			t.Errorf("it waited only %v", waited)
		}
	}
	if n := len(w.leases()); n != 1 {
		t.Errorf("%d leases", n)
	}
	b.LetAll()
	a := running.wait(t)
	a.want(t, 200)
	w.awaitIdle()
	w.grants = 1
}

// TestQueuedStreamIsKeptAlive: a queued stream gets comments once its keep-alive is due, and a later failure is an error
// event, because the status is out.
func TestQueuedStreamIsKeptAlive(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.keepalive, l.timeout = 50*time.Millisecond, 1500*time.Millisecond
	w := newWorld(t, l)
	running := w.start(ask{tag: "running"})
	w.awaitLeases(1)
	for _, ends := range []bool{true, false} {
		s := w.open(ask{tag: "kept alive"}) // returns with the headers, while it is queued
		line, err := s.r.ReadString('\n')
		if err != nil || len(line) < 9 || line[:9] != ": queued " {
			t.Errorf("the first line is %q, %v", line, err)
		}
		if s.res.StatusCode != 200 {
			t.Errorf("status %d", s.res.StatusCode)
		}
		if ends {
			all, _ := s.rest()
			wantErrorEvent(t, all)
			continue
		}
		b.LetAll()
		if all, clean := s.rest(); !clean || len(all) != 5 {
			t.Errorf("clean %v, frames %q", clean, all)
		}
	}
	a := running.wait(t)
	a.want(t, 200)
	w.awaitIdle()
}

// TestNodeGoneEndsWaitersAtOnce: waiters without any other candidate end as 503 the moment their node is lost, whatever
// their deadline; those with another one go there, in order.
func TestNodeGoneEndsWaitersAtOnce(t *testing.T) {
	t.Parallel()
	b1 := newBackend(t, backend.Options{Default: backend.Plan{Hold: backend.BeforeHead}})
	b2 := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: b1.URL()}, {id: "p2", node: "n2", url: b2.URL()}},
		models:    map[string][]string{"only1": {"p1"}, "only2": {"p2"}, "both": {"p1", "p2"}},
		grace:     time.Millisecond, heartbeat: 60 * time.Second,
	})
	w.start(ask{model: "only1", tag: "lost"})
	kept := w.start(ask{model: "only2", tag: "kept"})
	w.awaitLeases(2)
	var alone, others []*flight
	for i := range 3 {
		alone = append(alone, w.queue(ask{model: "only1", tag: fmt.Sprint("alone", i), stream: i == 1}, 2*i+1))
		others = append(others, w.queue(ask{model: "both", tag: fmt.Sprint("other", i)}, 2*i+2))
	}
	w.nodes["n1"].kill()
	for _, f := range alone {
		a := f.wait(t)
		a.wantError(t, 503, "provider_unavailable")
		a.wantRetry(t)
	}
	w.awaitPending(3)
	a := w.ask(ask{model: "only1", tag: "late"})
	a.wantError(t, 503, "provider_unavailable")
	b2.LetAll()
	for _, f := range append(others, kept) {
		a := f.wait(t)
		a.want(t, 200)
	}
	if got := fmt.Sprint(b2.Tags()); got != "[kept other0 other1 other2]" {
		t.Errorf("order %s", got)
	}
	w.awaitIdle()
}

// TestReturningNodeGetsNoBurst: a node that comes with all its slots free gets no more than they are.
func TestReturningNodeGetsNoBurst(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Pace: time.Millisecond}})
	l := shared(b, 2)
	l.grace = 20 * time.Second
	w := newEdgeOnly(t, l)
	var flights []*flight
	for i := range 20 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i), stream: true}))
	}
	w.awaitPending(20)
	w.startNode("n1")
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	if s := b.Stats(); s.Peak > 2 || s.Violations != 0 {
		t.Errorf("backend %+v", s)
	}
	w.awaitIdle()
}

// TestIdempotencyKeyInProgress: the same key again while the first still runs on a living connection is 409.
func TestIdempotencyKeyInProgress(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	first := w.start(ask{tag: "first", key: "k1"})
	w.awaitLeases(1)
	second := w.queue(ask{tag: "second", key: "k2"}, 1)
	for _, key := range []string{"k1", "k2"} {
		a := w.ask(ask{tag: "again", key: key})
		a.wantError(t, 409, "in_progress_elsewhere")
	}
	b.LetAll()
	for _, f := range []*flight{first, second} {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	w.want(200, ask{tag: "anew", key: "k1"})
	w.awaitIdle()
	w.grants = 3
}
