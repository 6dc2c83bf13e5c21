package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestLeaderKilledUnderLoad: kill -9 of the leader, again and again, under load. The others go on: no stream through them
// breaks, the line keeps its order over the death of a replica that some of it came through, nothing is run twice or above
// capacity, and the one that was killed comes back and catches up. How long the next grant took is told, not asserted:
//
//	E2E_LONG=1 go test ./e2e -run TestLeaderKilledUnderLoad -v -count=1 -timeout 30m
func TestLeaderKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	var first, last []time.Duration
	for n := range rounds(3, 50) {
		a, b := x.killOne(n, "leader", x.c.leader())
		first, last = append(first, a), append(last, b)
		if t.Failed() {
			break
		}
	}
	t.Logf("from the kill to the next grant: %s; until both others had granted: %s", quantiles(first), quantiles(last))
	x.end()
}

// TestFollowerKilledUnderLoad: the same of a follower. Nobody else should notice.
func TestFollowerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	var first, last []time.Duration
	for n := range rounds(2, 20) {
		a, b := x.killOne(n, "follower", x.c.followers()[n%2])
		first, last = append(first, a), append(last, b)
		if t.Failed() {
			break
		}
	}
	t.Logf("from the kill to the next grant: %s; until both others had granted: %s", quantiles(first), quantiles(last))
	x.end()
}

// killOne kills a replica that a part of a line came through, wants the line to go on, and starts it again. It returns how
// long the first and the other of the others took until they granted what came after the kill.
func (x *rush) killOne(n int, what string, victim int) (first, last time.Duration) {
	c := x.c
	c.t.Helper()
	o := othersOf(victim)
	line := x.lineUp(fmt.Sprint(what, n), o[n%2], o[0], victim, o[1], victim, o[0])
	f := x.inflict(&fault{what: "kill of the " + what + " " + c.id(victim), at: []int{victim}, breaks: true, refuses: true})
	killed := time.Now()
	c.kill(victim)
	first, last = x.nextGrant(killed, o...)
	c.leader(o...)
	line.awaitWaiting(o[0], 5, victim)
	line.serve()
	c.start(victim)
	c.caughtUp(victim)
	x.mend(f)
	x.flows(6)
	return first, last
}
