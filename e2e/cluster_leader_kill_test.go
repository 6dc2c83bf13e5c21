package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestLeaderKilledUnderLoad: kill -9 of the leader, again and again, under load. The others go on: no stream through them
// breaks, the line keeps its order over the death of those that some of it came through, nothing is run twice or above
// capacity, and the one that was killed comes back and catches up. How long the next grant took is told, not asserted:
//
//	E2E_LONG=1 go test ./e2e -run TestLeaderKilledUnderLoad -v -count=1 -timeout 30m
func TestLeaderKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	c := x.c
	var first, last []time.Duration
	for n := range rounds(3, 50) {
		leader := c.leader()
		o := slices.DeleteFunc(c.running(), func(i int) bool { return i == leader })
		line := x.lineUp(fmt.Sprint("round", n), o[n%2], o[0], leader, o[1], leader, o[0])
		f := x.inflict(&fault{what: "kill of the leader " + c.id(leader), at: []int{leader}, breaks: true, refuses: true})
		killed := time.Now()
		c.kill(leader)
		a, b := x.nextGrant(killed, o...)
		first, last = append(first, a), append(last, b)
		c.leader(o...)
		line.awaitWaiting(o[0], 5, leader)
		line.serve()
		c.start(leader)
		c.caughtUp(leader)
		x.mend(f)
		x.flows(6)
		if t.Failed() {
			break
		}
	}
	t.Logf("from the kill to the next grant: %s; until both others had granted: %s", quantiles(first), quantiles(last))
	x.end()
}
