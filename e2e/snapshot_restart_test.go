package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"iop/e2e/backend"
)

// TestRestartFromASnapshot: after more entries than the log keeps in one piece, a kill -9 finds waiters and leases as
// they were: snapshot and tail together are the whole.
func TestRestartFromASnapshot(t *testing.T) {
	if !long() {
		t.Skip("makes some 24,000 log entries: E2E_LONG=1")
	}
	t.Parallel()
	b := newBackend(t, backend.Options{})
	b.SetFor("held", backend.Plan{Hold: backend.BeforeHead})
	l := shared(b, 6)
	l.throttled, l.log = true, "info"
	w := newWorld(t, l)
	for range 4 {
		w.start(ask{tag: "held"})
	}
	w.awaitLeases(4)
	started := w.status().AppliedIndex
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			a := ask{tag: "many"}
			body := a.bytes()
			request := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			c, err := newLean(w.edge.openai, request)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.c.Close() }()
			for range 12_000 {
				if _, err := c.once(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for i := range 2 {
		w.start(ask{tag: "held"})
		w.awaitLeases(5 + i)
	}
	for i := range 5 {
		w.queue(ask{tag: "held", model: "ornith-fast", key: fmt.Sprint("waiter", i)}, i+1)
	}
	order, index := requests(w.waiters()), w.status().AppliedIndex
	t.Logf("%d log entries", index-started)
	await(t, "a snapshot has been taken", func() bool { return w.metric("iop_snapshot_seconds_count") > 0 })
	w.edge.kill()
	m := inspect(t, w.dataDir())
	if len(m.Leases()) != 6 || len(m.Waiters()) != 5 || m.Index() < index {
		t.Errorf("%d leases, %d waiters at %d, want 6 and 5 at %d", len(m.Leases()), len(m.Waiters()), m.Index(), index)
	}
	w.restartEdge()
	if got := requests(w.waiters()); !slices.Equal(got, order) {
		t.Errorf("waiters after the restart\n %v, before\n %v", got, order)
	}
	w.awaitLink("n1")
	b.LetAll()
	for i := range 5 {
		w.want(200, ask{tag: "held", model: "ornith-fast", key: fmt.Sprint("waiter", i)})
	}
	w.awaitIdle()
}
