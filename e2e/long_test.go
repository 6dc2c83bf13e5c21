package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// longPrompt is far more than the layout's threshold of 1,000 tokens, however they are estimated, and far less than
// the window that these tests give.
var longPrompt = strings.Repeat("a long story of many words ", 1000)

func longAsk(tag string) ask { return ask{tag: tag, prompt: longPrompt} }

// TestBlockedLongNeverHoldsUpNormal: with one long slot of three taken, normal requests pass a waiting long one; that
// one is the next when its slot frees, before a normal one that came later.
func TestBlockedLongNeverHoldsUpNormal(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: b.URL(), capacity: 3, long: 1, window: 131072}},
		models:    map[string][]string{"m": {"p1"}},
	})
	arrived := func(tags ...string) {
		t.Helper()
		await(t, fmt.Sprint("at the backend: ", tags), func() bool { return slices.Equal(b.Tags(), tags) })
	}
	var flights []*flight
	start := func(a ask) { flights = append(flights, w.start(a)) }
	start(longAsk("L1"))
	arrived("L1")
	flights = append(flights, w.queue(longAsk("L2"), 1))
	start(ask{tag: "N1"})
	arrived("L1", "N1")
	start(ask{tag: "N2"})
	arrived("L1", "N1", "N2")
	flights = append(flights, w.queue(ask{tag: "N3"}, 2))
	if p := w.provider("p1"); p.InFlight != 3 || p.LongInFlight != 1 || p.Queued != 2 || p.LongQueued != 1 {
		t.Errorf("provider %+v", p)
	}
	if q := w.status().Queue; q.Pending != 2 || q.LongPending != 1 {
		t.Errorf("queue %+v", q)
	}
	b.LetTag("N1")
	arrived("L1", "N1", "N2", "N3")
	flights = append(flights, w.queue(ask{tag: "N4"}, 2))
	b.LetTag("L1")
	arrived("L1", "N1", "N2", "N3", "L2")
	b.LetTag("N2")
	arrived("L1", "N1", "N2", "N3", "L2", "N4")
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
	if s := b.Stats(); s.Peak != 3 || s.Violations != 0 {
		t.Errorf("backend %+v", s)
	}
}

// TestLongNeedsALongSlot: an explicit zero takes no long request, and a provider that doesn't count treats it as normal.
func TestLongNeedsALongSlot(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, layout{
		providers: []provider{
			{id: "none", url: b.URL(), long: -1, window: 131072},
			{id: "uncounted", url: b.URL(), window: 131072},
			{id: "narrow", url: b.URL(), window: 200},
		},
		models: map[string][]string{"none": {"none"}, "both": {"none", "uncounted"}, "narrow": {"narrow"}},
	})
	a := w.ask(ask{model: "none", tag: "none", prompt: longPrompt})
	a.wantError(t, 400, "context_length_exceeded")
	a = w.want(200, ask{model: "both", tag: "both", prompt: longPrompt})
	if got := a.header.Get("x-iop-provider"); got != "uncounted" {
		t.Errorf("the long request ran at %q", got)
	}
	a = w.ask(ask{model: "narrow", tag: "narrow", prompt: longPrompt})
	a.wantError(t, 400, "context_length_exceeded")
	w.want(200, ask{model: "none", tag: "normal"})
	w.awaitIdle()
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs at the backend, want 2", n)
	}
}

// TestLongRunIsNotReaped: no janitor takes the slot of a run that lives, however long.
func TestLongRunIsNotReaped(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.fence, l.reattach, l.grace = 200_000_000, 200_000_000, 1_000_000
	w := newWorld(t, l)
	f := w.start(ask{tag: "old"})
	id := w.awaitLeases(1)[0].ID
	await(t, "the lease is ten fence timeouts old", func() bool {
		l := w.leases()
		return len(l) == 1 && l[0].ID == id && l[0].AgeMS > 2000
	})
	b.Let(1)
	a := f.wait(t)
	a.want(t, 200)
	w.awaitIdle()
}
