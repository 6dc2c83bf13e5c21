package e2e

import (
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestMinorityReplicaStops: a replica without a majority is asked to stop, with a stream that runs and a client that waits.
// The stream ends whole, the client is told, and the process ends; nobody has to kill it.
func TestMinorityReplicaStops(t *testing.T) {
	t.Parallel()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: 1, Default: plan})
	l := shared(b, 1)
	l.stop = 3 * time.Second
	c := newCluster(t, l, 3)
	left := c.leader()
	w := c.at(left)
	stream := w.start(ask{tag: "runs", stream: true})
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	waits := w.queue(ask{tag: "waits"}, 1)
	for _, i := range othersOf(left) {
		freeze(t, c.at(i).edge.process)
	}
	await(t, "it is not ready", func() bool { return get(t, w.edge.openai, "/readyz") == 503 })
	terminate(t, w.edge.process)
	w.awaitStopping()
	a := waits.wait(t)
	a.wantError(t, 503, "stopping")
	b.LetAll()
	a = stream.wait(t)
	a.want(t, 200)
	if string(a.body) != streamed(plan) {
		t.Errorf("got %q", a.body)
	}
	if code := w.edge.code(t); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	for _, i := range othersOf(left) {
		thaw(t, c.at(i).edge.process)
	}
	c.leader()
	c.start(left)
	c.agree()
}
