package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// TestSigkillEdgeKeepsPlaces: kill -9 of the edge with 4 leases and 8 waiters. The restarted edge shows the same waiters
// and generation, returns the old leases, and gives the clients that retry (half of them with an Idempotency-Key, half
// with nothing but the same body) their old places, before a request that came after the restart. Many times in a row.
func TestSigkillEdgeKeepsPlaces(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 4, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 4)
	l.throttled, l.grace = true, 10_000_000_000
	w := newWorld(t, l)
	for round := range rounds(20, 60) {
		killRound(t, w, b, round)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func killRound(t *testing.T, w *world, b *backend.Backend, round int) {
	t.Helper()
	before := b.Stats().Total
	generation := w.awaitLink("n1")
	name := func(kind string, i int) string { return fmt.Sprintf("round%d-%s%d", round, kind, i) }
	waiter := func(i int) ask {
		a := ask{tag: name("waiter", i), model: []string{"ornith:35b", "ornith-fast"}[i%2], stream: i%3 == 0}
		if i < 4 {
			a.key = a.tag
		}
		return a
	}
	var lost []*flight
	for i := range 4 {
		lost = append(lost, w.start(ask{tag: name("lease", i)}))
	}
	await(t, "four run", func() bool { return b.Stats().Held == 4 })
	for i := range 8 {
		lost = append(lost, w.queue(waiter(i), i+1))
	}
	leases, order := w.awaitLeases(4), requests(w.waiters())

	w.line.Refuse(true)
	w.edge.kill()
	for _, f := range lost {
		if a := f.wait(t); a.status == 200 && a.clean {
			t.Errorf("%s got a whole answer from a killed edge", a.tag)
		}
	}
	m := inspect(t, w.dataDir())
	if len(m.Leases()) != 4 || len(m.Waiters()) != 8 {
		t.Errorf("the log holds %d leases and %d waiters", len(m.Leases()), len(m.Waiters()))
	}
	w.restartEdge()

	wantDetached(t, w, order)
	if p := w.provider("p1"); p.Generation != generation || p.Connected {
		t.Errorf("after the restart: provider %+v, want generation %d", p, generation)
	}
	w.line.Refuse(false)
	if g := w.awaitLink("n1"); g != generation+1 {
		t.Errorf("the node came back as generation %d, want %d", g, generation+1)
	}
	await(t, "the node has ended the old runs", func() bool { return b.Stats().Current == 0 })
	if got := w.leases(); len(got) != 0 {
		t.Errorf("leases of the killed edge are still held: %+v", got)
	}

	var flights []*flight
	for i := range 4 {
		flights = append(flights, w.start(ask{tag: name("new", i)}))
	}
	for _, l := range w.awaitLeases(4) {
		if l.ID <= leases[3].ID {
			t.Errorf("the lease %d was granted again", l.ID)
		}
	}
	await(t, "four new ones run", func() bool { return b.Stats().Held == 4 })
	flights = append(flights, w.queue(ask{tag: name("later", 0)}, 9))
	for _, i := range []int{5, 0, 7, 2, 1, 6, 3, 4} {
		flights = append(flights, w.start(waiter(i)))
	}
	var after []adminapi.Waiter
	await(t, "all waiters are taken over", func() bool {
		after = w.waiters()
		return !slices.ContainsFunc(after, func(x adminapi.Waiter) bool { return x.State != "waiting" })
	})
	if len(after) != 9 {
		t.Errorf("%d requests are pending, want 9: %+v", len(after), after)
	}
	for i := before + 9; i <= before+17; i++ {
		b.Let(1)
		await(t, "one more has begun", func() bool { return b.Stats().Total == i })
	}
	b.Let(4)
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	want := []string{}
	for i := range 8 {
		want = append(want, name("waiter", i))
	}
	if got := b.Tags()[before+8:]; !slices.Equal(got, append(want, name("later", 0))) {
		t.Errorf("order after the restart:\n %v", got)
	}
	if s := b.Stats(); s.Violations != 0 || s.Peak > 4 {
		t.Errorf("backend %+v", s)
	}
	w.awaitIdle()
	// A fresh noded, whose reconnects have not slowed down yet.
	w.replaceNode("n1", false)
}

func requests(ws []adminapi.Waiter) []string {
	out := []string{}
	for _, x := range ws {
		out = append(out, x.Request)
	}
	return out
}

// wantDetached checks that iopctl shows the waiters in their order, detached.
func wantDetached(t *testing.T, w *world, order []string) {
	t.Helper()
	var q adminapi.WaiterList
	if err := json.Unmarshal([]byte(w.iopctl(0, "queue", "list", "-o", "json")), &q); err != nil {
		t.Fatal(err)
	}
	if got := requests(q.Waiters); !slices.Equal(got, order) {
		t.Errorf("waiters after the restart\n %v, before\n %v", got, order)
	}
	for _, x := range q.Waiters {
		if x.State != "detached" {
			t.Errorf("the waiter %s is %s, want detached", x.Request, x.State)
		}
	}
}

// TestAbandonedWaitersEnd: a waiter whose client never comes back keeps nobody waiting for ever.
func TestAbandonedWaitersEnd(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.throttled, l.reattach = true, 500_000_000
	w := newWorld(t, l)
	w.start(ask{tag: "lost"})
	w.awaitLeases(1)
	w.queue(ask{tag: "lost too"}, 1)
	w.edge.kill()
	w.restartEdge()
	b.LetAll()
	w.awaitLink("n1")
	w.awaitPending(0)
	w.want(200, ask{tag: "next"})
	w.awaitIdle()
	w.grants = 2
}
