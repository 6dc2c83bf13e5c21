package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestLeaderFrozenUnderLoad: SIGSTOP of the leader, for shorter and for longer than its cluster waits for it. Meanwhile the
// others go on; when it wakes, it believes for a moment that it leads, and that much time has passed: nothing is granted
// twice, nobody's deadline is over, who waits at it keeps his place, and what streamed through it is whole or ends broken,
// but never has a gap.
func TestLeaderFrozenUnderLoad(t *testing.T) {
	t.Parallel()
	x := newQuietRush(t, func(l layout) *cluster {
		l.reattach = time.Minute // who sleeps longer loses his place
		return newCluster(t, l, 3)
	})
	x.flow()
	pauses := []time.Duration{time.Second, 5 * time.Second}
	if long() {
		pauses = append(pauses, 20*time.Second, time.Second, 2*time.Second, 3*time.Second, 4*time.Second, 5*time.Second, 20*time.Second)
	}
	var first []time.Duration
	for n, d := range pauses {
		first = append(first, x.freezeLeader(n, d))
		if t.Failed() {
			break
		}
	}
	t.Logf("from the pause to the next grant: %s", quantiles(first))
	x.end()
}

func (x *rush) freezeLeader(n int, d time.Duration) time.Duration {
	c := x.c
	t := c.t
	t.Helper()
	leader := c.leader()
	o := othersOf(leader)
	line := x.lineUp(fmt.Sprint("frozen", n), o[0], o[0], leader, o[1], leader, o[0])
	f := x.inflict(&fault{what: fmt.Sprintf("pause of the leader %s for %v", c.id(leader), d), at: []int{leader}, breaks: true})
	frozen := time.Now()
	freeze(t, c.at(leader).edge.process)
	first, _ := x.nextGrant(frozen, o...)
	time.Sleep(time.Until(frozen.Add(d))) // the fault itself
	thaw(t, c.at(leader).edge.process)
	c.leader()
	c.caughtUp(leader)
	line.awaitWaiting(o[0], 5)
	x.mend(f)
	line.serve()
	for k, q := range line.clients {
		if n := len(q.asked.tries); n != 1 {
			t.Errorf("client %d needed %d tries: %s", k, n, x.story(q.asked, q.asked.tries[0]))
		}
	}
	x.flows(6)
	return first
}
