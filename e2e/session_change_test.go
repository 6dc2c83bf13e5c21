package e2e

import (
	"fmt"
	"slices"
	"testing"

	"iop/e2e/backend"
)

// fileOf renders the file of replica i under a changed layout, which is the cluster's from then on.
func (c *cluster) fileOf(i int, change func(*layout)) []byte {
	change(&c.layout)
	return c.file(i)
}

// TestChangesThroughAFollower: an operator need not know who leads. A refresh and a drain through a follower are in effect
// everywhere, also at the node; of two refreshes at once, through two replicas, one is a conflict.
func TestChangesThroughAFollower(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	c := newCluster(t, shared(b, 2), 3)
	leader := c.leader()
	two := c.followers()
	revision := c.at(two[0]).status().Revision

	status, body := c.at(two[0]).post("", c.fileOf(two[0], func(l *layout) { l.providers[0].capacity = 3 }))
	r := parseReport(t, body)
	if status != 200 || r.Result != "applied" || r.Revision != revision+1 || !slices.Equal(r.PushedNodes, []string{"n1"}) {
		t.Fatalf("%d %s", status, body)
	}
	for i := range 3 {
		await(t, c.id(i)+" has the new capacity", func() bool {
			p := c.at(i).provider("p1")
			return p.Capacity != nil && *p.Capacity == 3
		})
	}
	var flights []*flight
	for i := range 3 { // one through each, all at once: every link of the node has it
		flights = append(flights, c.at(i).start(ask{tag: fmt.Sprint("run", i)}))
	}
	await(t, "three run", func() bool { return b.Stats().Held == 3 })
	b.Let(3)
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}

	query := fmt.Sprintf("?expected_revision=%d", revision+1)
	files := [][]byte{
		c.fileOf(leader, func(l *layout) { l.queue = 77 }), c.fileOf(two[1], func(l *layout) { l.queue = 78 }),
	}
	got := make(chan int, 2)
	for k, i := range []int{leader, two[1]} {
		go func() { status, _ := c.at(i).post(query, files[k]); got <- status }()
	}
	if x, y := <-got, <-got; min(x, y) != 200 || max(x, y) != 409 {
		t.Errorf("two refreshes at once got %d and %d", x, y)
	}
	c.agree()

	c.at(two[0]).iopctl(0, "providers", "drain", "p1")
	await(t, "the leader knows that it drains", func() bool { return c.at(leader).provider("p1").Draining })
	if a := c.at(leader).ask(ask{tag: "drained"}); a.status != 503 {
		t.Errorf("a drained provider: %d", a.status)
	}
	c.at(two[1]).iopctl(0, "providers", "undrain", "p1")
	b.LetAll()
	c.at(two[1]).want(200, ask{tag: "undrained"})
}

// TestLeaderStopsInOrder: the leader is asked to stop while streams run through it and through another, and requests wait
// at both. Nothing is broken or refused that was there, and what comes to the others goes on.
func TestLeaderStopsInOrder(t *testing.T) {
	t.Parallel()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	b := newBackend(t, backend.Options{Limit: 4, Default: plan})
	c := newCluster(t, shared(b, 4), 3)
	leader := c.leader()
	other := c.followers()[0]
	var flights []*flight
	for i := range 2 {
		flights = append(flights, c.at(leader).start(ask{tag: fmt.Sprint("leader", i), stream: true}),
			c.at(other).start(ask{tag: fmt.Sprint("other", i), stream: true}))
	}
	await(t, "four run", func() bool { return b.Stats().Held == 4 })
	flights = append(flights, c.at(leader).queue(ask{tag: "waits at the leader", stream: true}, 1))
	flights = append(flights, c.at(other).queue(ask{tag: "waits at the other", stream: true}, 2))
	terminate(t, c.at(leader).edge.process)
	c.at(leader).awaitStopping()
	b.LetAll()
	flights = append(flights, c.at(other).start(ask{tag: "comes", stream: true}))
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != streamed(plan) {
			t.Errorf("%s got %q", a.tag, a.body)
		}
	}
	if code := c.at(leader).edge.code(t); code != 0 {
		t.Errorf("the leader ended with code %d", code)
	}
	if now := c.leader(); now == leader {
		t.Error("who was stopped leads")
	}
	c.at(other).awaitIdle()
	if s := b.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("at the backend: %+v", s)
	}
	c.start(leader)
	c.agree()
}
