package e2e

import (
	"fmt"
	"slices"
	"testing"

	"iop/e2e/backend"
)

// shared is a system in which two models share one provider.
func shared(b *backend.Backend, capacity int) layout {
	return layout{
		providers: []provider{{id: "p1", url: b.URL(), capacity: capacity}},
		models:    map[string][]string{"ornith:35b": {"p1"}, "ornith-fast": {"p1"}, "m": {"p1"}},
	}
}

// TestTwoModelsShareOneSlot: 20 requests at once on two models of one provider of capacity 1 run one by one, in the
// order of the queue.
func TestTwoModelsShareOneSlot(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	twoModelsShareOneSlot(t, w, b, 0)
}

// twoModelsShareOneSlot is the story itself; seen is how many runs the backend has had before.
func twoModelsShareOneSlot(t *testing.T, w *world, b *backend.Backend, seen int) {
	t.Helper()
	models := []string{"ornith:35b", "ornith-fast"}
	var flights []*flight
	for i := range 20 {
		flights = append(flights, w.start(ask{model: models[i%2], tag: fmt.Sprintf("r%d", i), stream: i%4 < 2}))
	}
	w.awaitPending(19)
	order := []string{w.awaitLeases(1)[0].Request}
	for i, x := range w.waiters() {
		if x.Position != i+1 {
			t.Errorf("the waiter %d has position %d", i+1, x.Position)
		}
		order = append(order, x.Request)
	}
	if p := w.provider("p1"); p.InFlight != 1 || p.Queued != 19 || p.Status != "full" {
		t.Errorf("provider %+v", p)
	}
	b.LetAll()
	tags := map[string]string{}
	for i, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
		if a.text() != " 1 2 3" {
			t.Errorf("%s got %q", a.tag, a.text())
		}
		tags[a.header.Get("x-request-id")] = a.tag
		if model := models[i%2]; !slices.Contains([]string{model}, modelOf(&a)) {
			t.Errorf("%s asked %s and was answered as %q", a.tag, model, modelOf(&a))
		}
	}
	want := []string{}
	for _, id := range order {
		want = append(want, tags[id])
	}
	if got := b.Tags()[seen:]; !slices.Equal(got, want) {
		t.Errorf("order at the backend\n %v, order of the queue\n %v", got, want)
	}
	if s := b.Stats(); s.Peak != 1 || s.Violations != 0 || s.Total != seen+20 {
		t.Errorf("backend %+v", s)
	}
	w.awaitIdle()
	b.HoldAgain()
}

// TestSlotIsHeldToTheEndOfTheStream, not to the headers.
func TestSlotIsHeldToTheEndOfTheStream(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	w := newWorld(t, shared(b, 1))
	s := w.open(ask{tag: "first"})
	if s.res.StatusCode != 200 {
		t.Fatal(s.res.Status)
	}
	s.next() // TestFramesAreFlushedAtOnce: the frame is here although the backend stands still
	f := w.queue(ask{tag: "second"}, 1)
	if n := b.Stats().Total; n != 1 {
		t.Errorf("%d runs while the first stream is open", n)
	}
	b.Let(1)
	if _, clean := s.rest(); !clean {
		t.Error("the stream has no clean end")
	}
	b.Let(1)
	a := f.wait(t)
	a.want(t, 200)
	w.awaitIdle()
}

// TestFramesAreFlushedAtOnce: each token arrives while the backend waits before the next.
func TestFramesAreFlushedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 2, Hold: backend.AfterHead}})
	w := newWorld(t, shared(b, 1))
	s := w.open(ask{tag: "head"}) // the headers are here before the first token
	b.Let(1)
	s.next()
	s.rest()
	for at := 1; at < 8; at++ {
		b.Set(backend.Plan{Tokens: 8, Hold: backend.AfterTokens, At: at})
		s := w.open(ask{tag: fmt.Sprint("at", at)})
		for range at {
			s.next()
		}
		b.Let(1)
		if all, clean := s.rest(); !clean || len(all) != 8-at+2 {
			t.Errorf("at %d: the rest has %d frames, clean %v", at, len(all), clean)
		}
	}
	w.awaitIdle()
}

// TestTwoFreedSlotsWakeTwoWaiters: no waiter sleeps while a slot is free.
func TestTwoFreedSlotsWakeTwoWaiters(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 2))
	var flights []*flight
	for i := range 6 {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i)}))
	}
	for n := 2; n <= 6; n += 2 {
		await(t, fmt.Sprint("two run, ", n, " have begun"), func() bool { s := b.Stats(); return s.Held == 2 && s.Total == n })
		b.Let(2)
	}
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
}
