package e2e

import (
	"fmt"
	"slices"
	"testing"

	"iop/e2e/backend"
)

// TestRefreshCapacityDownCutsNobody: from 4 to 1 with 4 in flight. All four run to their end, nobody is admitted before
// less than one is left, and then the waiters go one by one, in order.
func TestRefreshCapacityDownCutsNobody(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4, Default: backend.Plan{Hold: backend.AfterTokens, At: 1}})
	w, side := newBusyWorld(t, shared(b, 4), "n1")
	var running, waiting []*flight
	for i := range 4 {
		running = append(running, w.start(ask{tag: fmt.Sprint("r", i), stream: i%2 == 0}))
		await(t, fmt.Sprint(i+1, " run"), func() bool { return b.Stats().Held == i+1 })
	}
	for i := range 3 {
		model := []string{"ornith:35b", "ornith-fast", "m"}[i]
		waiting = append(waiting, w.queue(ask{tag: fmt.Sprint("w", i), model: model, stream: i == 1}, i+1))
	}
	r := w.apply(func(l *layout) { l.providers[0].capacity = 1 })
	r.wantTouched("p1", "")
	r.wantPath("nodes[n1].providers[p1].capacity", "live", 4, 1)
	r.wantOver("p1 4/1 0/-")
	if !slices.Equal(r.PushedNodes, []string{"n1"}) {
		t.Errorf("pushed to %v", r.PushedNodes)
	}
	if p := w.provider("p1"); p.InFlight != 4 || *p.Capacity != 1 || p.Queued != 3 || p.Status != "full" {
		t.Errorf("provider %+v", p)
	}
	waiting = append(waiting, w.queue(ask{tag: "late"}, 4))
	for i, f := range running {
		b.LetTag(f.ask.tag)
		a := f.wait(t)
		a.want(t, 200)
		if a.text() != " 1 2 3" {
			t.Errorf("%s was cut: %q", a.tag, a.text())
		}
		if i == 3 {
			break
		}
		await(t, "its slot is given back", func() bool { return w.provider("p1").InFlight == 3-i })
		if n := w.pending(); n != 4 || b.Stats().Total != 4 {
			t.Errorf("with %d in flight somebody was admitted: %d wait", 3-i, n)
		}
	}
	for i, f := range waiting {
		await(t, "the next one runs", func() bool { s := b.Stats(); return s.Held == 1 && s.Total == 5+i })
		if p := w.provider("p1"); p.InFlight != 1 || p.Queued != 3-i {
			t.Errorf("provider %+v", p)
		}
		b.LetTag(f.ask.tag) // no other one may be there
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("backend %+v", s)
	}
}

// TestRefreshCapacityUpStartsThreeAtOnce: from 1 to 4 with five waiters. The first three go in one step of the log, and
// the node is ready for them; the others keep their places. Up and down again and again.
func TestRefreshCapacityUpStartsThreeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4, Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	for round := range rounds(6, 60) {
		seen := b.Stats().Total
		name := func(i int) string { return fmt.Sprintf("round%d-%d", round, i) }
		flights := []*flight{w.start(ask{tag: name(0)})}
		await(t, "one runs", func() bool { return b.Stats().Held == 1 })
		for i := 1; i <= 5; i++ {
			flights = append(flights, w.queue(ask{tag: name(i), stream: i%2 == 0}, i))
		}
		r := w.apply(func(l *layout) { l.providers[0].capacity = 4 })
		r.wantPath("nodes[n1].providers[p1].capacity", "live", 1, 4)
		r.wantOver()
		await(t, "four run", func() bool { return b.Stats().Held == 4 })
		if n := w.pending(); n != 2 {
			t.Errorf("%d wait, want 2", n)
		}
		granted := map[uint64]int{}
		for _, l := range w.leases() {
			if l.Provider == "p1" {
				granted[l.GrantedIndex]++
			}
		}
		if len(granted) != 2 {
			t.Errorf("the four leases are from %d steps, want one and then three at once: %v", len(granted), granted)
		}
		if got := b.Tags()[seen:]; got[0] != name(0) || !sameElements(got[1:], name(1), name(2), name(3)) {
			t.Errorf("at the backend: %v", got)
		}
		b.LetAll()
		for _, f := range flights {
			a := f.wait(t)
			a.want(t, 200)
		}
		b.HoldAgain()
		await(t, "nothing runs", func() bool { return w.provider("p1").InFlight == 0 })
		w.apply(func(l *layout) { l.providers[0].capacity = 1 })
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("backend %+v", s)
	}
}

func sameElements(got []string, want ...string) bool {
	got = slices.Sorted(slices.Values(got))
	return slices.Equal(got, slices.Sorted(slices.Values(want)))
}

// TestRefreshLongCapacity: long slots go down without cutting anyone and hold up no normal request; they go up and let
// the waiting long ones go at once; at 0 those that wait end, for no candidate will ever take them.
func TestRefreshLongCapacity(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 5, Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, layout{
		providers: []provider{{id: "p1", url: b.URL(), capacity: 5, long: 2, window: 131072}},
		models:    map[string][]string{"m": {"p1"}},
	}, "n1")
	long := func(slots int) refreshReport {
		t.Helper()
		return w.apply(func(l *layout) { l.providers[0].long = slots })
	}
	flights := map[string]*flight{}
	runs := func(tag string, a ask) {
		t.Helper()
		flights[tag] = w.start(a)
		await(t, tag+" runs", func() bool { r, ok := b.Run(tag); return ok && r.End == backend.Running })
	}
	ends := func(tag string) {
		t.Helper()
		await(t, tag+" is held", func() bool { return b.LetTag(tag) == 1 })
		a := flights[tag].wait(t)
		a.want(t, 200)
	}
	runs("L1", longAsk("L1"))
	runs("L2", longAsk("L2"))
	flights["L3"] = w.queue(longAsk("L3"), 1)

	r := long(1)
	r.wantPath("nodes[n1].providers[p1].long_context_capacity", "live", 2, 1)
	r.wantOver("p1 2/5 2/1")
	runs("N1", ask{tag: "N1"}) // before the long one that waits
	ends("L1")
	await(t, "one long slot is taken", func() bool { return w.provider("p1").LongInFlight == 1 })
	if n := w.pending(); n != 1 {
		t.Errorf("%d wait while the one long slot is taken, want 1", n)
	}
	ends("L2")
	await(t, "L3 runs", func() bool { _, ok := b.Run("L3"); return ok })

	for i, tag := range []string{"L4", "L5", "L6"} {
		flights[tag] = w.queue(longAsk(tag), i+1)
	}
	r = long(3)
	r.wantOver()
	await(t, "two more run", func() bool { return w.pending() == 1 && b.Stats().Held == 4 })
	if p := w.provider("p1"); p.LongInFlight != 3 || *p.LongCapacity != 3 || p.InFlight != 4 {
		t.Errorf("provider %+v", p)
	}
	if got := b.Tags()[4:]; !sameElements(got, "L4", "L5") {
		t.Errorf("at the backend: %v", b.Tags())
	}

	r = w.apply(func(l *layout) { l.providers[0].long = -1 })
	r.wantPath("nodes[n1].providers[p1].long_context_capacity", "live", 3, 0)
	a := flights["L6"].wait(t)
	a.wantError(t, 400, "context_length_exceeded")
	for _, tag := range []string{"N1", "L3", "L4", "L5"} {
		ends(tag)
	}
	r = w.apply(func(l *layout) { l.providers[0].long = 0 })
	runs("L7", longAsk("L7")) // long slots are not counted any more
	ends("L7")
	side.end()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("backend %+v", s)
	}
}
