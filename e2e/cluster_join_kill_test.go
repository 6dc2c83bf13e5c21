package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"iop/edged/adminapi"
)

// TestKilledWhileItJoins: a replica that was alone gets two more, and at any moment of that the newcomer or the one that
// leads is killed and started again. In the end there are three with the same state, and nobody has lost anything.
func TestKilledWhileItJoins(t *testing.T) {
	t.Parallel()
	r := dice(t)
	x := newQuietRush(t, func(l layout) *cluster {
		c := newEmptyCluster(t, l, 3)
		c.alone(0)
		c.await(0)
		c.startNodes()
		return c
	})
	c := x.c
	f := x.inflict(&fault{what: "the cluster grows and is killed", at: []int{0, 1, 2}, breaks: true, refuses: true, nodes: true})
	x.flow()
	for newcomer := 1; newcomer < 3; newcomer++ {
		c.launch(newcomer)
		for range rounds(3, 20) {
			quit := c.takeIn(newcomer)
			time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // the moment
			victim := []int{0, newcomer}[r.IntN(2)]
			c.kill(victim)
			quit()
			c.launch(victim)
		}
		quit := c.takeIn(newcomer)
		await(t, c.id(newcomer)+" is in", func() bool { return c.votes(newcomer) })
		quit()
		c.await(newcomer)
	}
	c.awaitAll()
	c.leader()
	for i := range c.replicas {
		c.caughtUp(i)
	}
	x.mend(f)
	x.flows(12)
	x.end()
}

// takeIn has iopctl ask for a replica to be taken in, until the result is called. One try may find nobody who can.
func (c *cluster) takeIn(i int) (quit func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	iopctl := program(c.t, "iopctl")
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			cmd := exec.CommandContext(ctx, iopctl, "cluster", "add", c.id(i), c.public(i))
			cmd.Env = append(cmd.Environ(), "IOP_EDGE="+c.own(n%i, 9080))
			_ = cmd.Run() // votes tells
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() { cancel(); <-done }
}

// votes tells whether a replica knows itself as one that votes.
func (c *cluster) votes(i int) bool {
	var all adminapi.Cluster
	text, err := tryFetch(c.own(i, 9080), "/cluster")
	if err != nil || json.Unmarshal(text, &all) != nil {
		return false
	}
	return slices.ContainsFunc(all.Members, func(m adminapi.ClusterMember) bool { return m.ID == c.id(i) && m.Voter })
}
