package e2e

import (
	"testing"

	"iop/e2e/backend"
)

// TestQueueCancel: an operator takes waiters out of the queue at whichever replica; their clients are told so at once, what
// runs and what else waits goes on, and each change is a line of the log of the edge that was asked.
func TestQueueCancel(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	c := newCluster(t, shared(b, 1), 3)
	c.levelled()
	leader, two := c.at(c.leader()), c.followers()
	one, other := c.at(two[0]), c.at(two[1])
	running := one.start(ask{tag: "running"})
	one.awaitLeases(1)
	var waiting []*flight
	for i, stream := range []bool{false, true} {
		waiting = append(waiting, one.queue(ask{tag: "away", stream: stream}, i+1))
	}
	stays := leader.queue(ask{tag: "stays"}, 3)
	list := other.waiters()
	for i, f := range waiting {
		wantWords(t, "cancel", other.iopctl(0, "queue", "cancel", list[i].Request), list[i].Request+" has left the queue")
		a := f.wait(t)
		a.wantError(t, 503, "canceled_by_operator")
		if a.header.Get("X-Should-Retry") != "false" && !f.ask.stream {
			t.Errorf("header %v", a.header)
		}
	}
	wantWords(t, "it has gone", other.iopctl(1, "queue", "cancel", list[0].Request), "no waiting request", "cure:")
	other.iopctl(1, "queue", "cancel", "nobody")
	wantWords(t, "what runs", other.iopctl(1, "queue", "cancel", other.leases()[0].Request), "does not wait", "cure:")
	wantWords(t, "the log", other.edge.out.String(), `what="queue cancel" token=none operator=`, `from=127.0.0.1:`, list[0].Request, list[1].Request)
	b.LetAll()
	for _, f := range []*flight{running, stays} {
		a := f.wait(t)
		a.want(t, 200)
	}
	if n := b.Stats().Total; n != 2 {
		t.Errorf("%d runs, want two", n)
	}
	other.awaitIdle()
	c.agree()
}
