package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
	"iop/fsm"
)

// TestStreamsOutliveEveryOtherLinkOfTheirNode: a replica is cut off, and its session is ended; then the other two stand still
// until the node has lost its links to them, too, so that for a while it has no link that anybody counts. The streams of the
// first go on over its old transport. All the time they are counted: nobody gets a slot before one of them ends, and the
// node does not end them when it registers anew.
func TestStreamsOutliveEveryOtherLinkOfTheirNode(t *testing.T) {
	t.Parallel()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: 2, Default: plan})
	l := shared(b, 2)
	l.grace, l.fence = 10*time.Second, time.Minute
	l.edge = map[string]any{"advertise": map[string]any{"node": "127.0.0.1:1"}} // the node has only the ways that can be cut
	c := newCluster(t, l, 3)
	c.levelled()
	alone := c.followers()[0]
	others := othersOf(alone)
	other := c.at(c.leader())
	var streams []*flight
	for i := range 2 {
		streams = append(streams, c.at(alone).start(ask{tag: fmt.Sprint("stream", i), stream: true}))
	}
	await(t, "two streams run", func() bool { return b.Stats().Held == 2 })
	c.apart(alone)
	await(t, "its session is ended", func() bool { return counted(other, "fencing") == 2 })
	c.leader(others...)

	for _, i := range others {
		freeze(t, c.at(i).edge.process)
	}
	for _, i := range others {
		c.lines["n1"][i].Refuse(true)
		c.lines["n1"][i].Cut()
	}
	time.Sleep(3 * time.Second) // the fault itself: longer than heartbeats may be missed
	for _, i := range others {
		thaw(t, c.at(i).edge.process)
	}
	other = c.at(c.leader(others...))
	await(t, "the node has no link that counts", func() bool {
		return !slices.ContainsFunc(other.node("n1").Links, func(l linkRow) bool { return l.State != "fenced" })
	})
	if n := counted(other, "fencing"); n != 2 {
		t.Errorf("%d leases are counted while the node has no other link, want both", n)
	}
	for _, i := range others {
		c.lines["n1"][i].Refuse(false)
	}
	await(t, "the node is back", func() bool {
		return slices.ContainsFunc(other.node("n1").Links, func(l linkRow) bool { return l.State == "ready" })
	})
	later := other.queue(ask{tag: "later", stream: true}, 1)
	if p := other.provider("p1"); p.InFlight != 2 {
		t.Errorf("%d in flight, want the two that run", p.InFlight)
	}
	if s := b.Stats(); s.Total != 2 || s.Held != 2 {
		t.Errorf("at the backend: %+v", s)
	}
	b.Let(1)
	await(t, "the next one runs when one has ended", func() bool { return b.Stats().Total == 3 })
	b.LetAll()
	for _, f := range append(streams, later) {
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != streamed(plan) {
			t.Errorf("%s got %q", a.tag, a.body)
		}
	}
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
	c.heal()
	c.leader()
	c.awaitLinks("n1")
	other.awaitIdle()
	c.agree()
}

// TestLeasesOfADeadNodeComeBack: as above, but the node dies. Nobody reports any more, so its leases are back when the fence
// timeout is over.
func TestLeasesOfADeadNodeComeBack(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2, Default: backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}})
	l := shared(b, 1)
	l.grace, l.fence = 10*time.Second, 3*time.Second
	c := newCluster(t, l, 3)
	c.levelled()
	alone := c.followers()[0]
	other := c.at(c.leader())
	stream := c.at(alone).start(ask{tag: "stream", stream: true})
	await(t, "it runs", func() bool { return b.Stats().Held == 1 })
	c.apart(alone)
	await(t, "its session is ended", func() bool { return counted(other, "fencing") == 1 })
	c.nodes["n1"].kill()
	await(t, "the lease is back", func() bool { return counted(other, "fencing") == 0 })
	a := stream.wait(t)
	if a.clean {
		t.Errorf("the stream of a dead node ended whole: %q", a.body)
	}
	c.heal()
	c.leader()
	c.startNode("n1")
	c.awaitLinks("n1")
	b.LetAll()
	other.want(200, ask{tag: "after"})
	other.awaitIdle()
	c.agree()
}

// counted is how many leases are in a state.
func counted(w *world, state string) int {
	w.t.Helper()
	return len(slices.DeleteFunc(w.leases(), func(l adminapi.Lease) bool { return l.State != state }))
}

// levelled waits until the cluster may use all that its programs know.
func (c *cluster) levelled() {
	c.t.Helper()
	for _, i := range c.running() {
		await(c.t, "the feature level is raised at "+c.id(i), func() bool { return c.members(i).Level >= fsm.LevelMax })
	}
}
