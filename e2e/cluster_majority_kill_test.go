package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestTwoOfThreeKilledUnderLoad: who is left serves what runs to its end, tells new requests that there is no leader, and
// keeps its waiters. When the others are back everything goes on, the line in its order, also for who waited at one that
// was killed.
func TestTwoOfThreeKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	for n := range rounds(2, 10) {
		left := x.c.leader()
		if n%2 == 1 {
			left = x.c.followers()[0]
		}
		x.killTwo(n, left)
		if t.Failed() {
			break
		}
	}
	x.end()
}

func (x *rush) killTwo(n, left int) {
	c, o := x.c, othersOf(left)
	t := c.t
	t.Helper()
	line := x.lineUp(fmt.Sprint("left", n), left, left, o[0], left, o[1], left)
	f := x.inflict(&fault{what: fmt.Sprintf("kill of all but %s", c.id(left)), at: o, breaks: true, refuses: true})
	for _, i := range o {
		c.kill(i)
	}
	await(t, "a new request is told that there is no leader", func() bool {
		a := c.at(left).ask(ask{model: "probe", tag: "probe"})
		if a.status == 200 {
			return false // a grant that was under way
		}
		a.wantError(t, 503, "no_leader")
		a.wantRetry(t)
		return true
	})
	line.next(0, 0) // it runs, and ends although nobody can write that down
	line.served(0)
	if held := x.line.Stats().Held; held != 0 {
		t.Errorf("%d more run while nothing can be granted", held)
	}
	for _, i := range o {
		c.launch(i)
	}
	for _, i := range o {
		c.await(i)
	}
	// The slot is free the moment there is a leader; who waited at a replica that was killed may come after it.
	for _, i := range o {
		c.caughtUp(i)
	}
	x.mend(f)
	for k := 1; k < len(line.clients); k++ {
		line.any(k)
	}
	for k := 1; k < len(line.clients); k++ {
		line.served(k)
	}
	line.inOrder(1, 3, 5) // who never lost his replica
	x.flows(6)
}

// TestAllKilledUnderLoad: all three are killed at once, and started again. The logs have everything: who waited finds his
// place, and what ran is given back once.
func TestAllKilledUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	for n := range rounds(1, 10) {
		x.killAll(n)
		if t.Failed() {
			break
		}
	}
	x.end()
}

func (x *rush) killAll(n int) {
	c, all := x.c, []int{0, 1, 2}
	t := c.t
	t.Helper()
	line := x.lineUp(fmt.Sprint("all", n), 0, 1, 2, 0, 1, 2)
	for _, p := range c.lines["n1"] {
		p.Refuse(true) // so that the slot of the line is not there before all of it is
	}
	f := x.inflict(&fault{what: "kill of all", at: all, breaks: true, refuses: true, nodes: true})
	for _, i := range all {
		c.kill(i)
	}
	for _, i := range all {
		c.launch(i)
	}
	c.awaitAll()
	await(t, "all who waited are back in line", func() bool {
		return len(line.waiters(0)) == 6 && line.attached(0)
	})
	order := requests(line.waiters(0))
	for _, p := range c.lines["n1"] {
		p.Refuse(false)
	}
	for k := range order { // who runs first is a matter of which link is ready first
		line.any(k + 1)
	}
	at := map[string]int{}
	for k := range line.clients {
		at[line.served(k)] = k
	}
	for n, id := range order {
		if want := (n + 1) % len(order); at[id] != want { // the first one's run was lost, so it came after the others
			t.Errorf("number %d in line is client %d, want %d", n, at[id], want)
		}
	}
	for _, node := range c.layout.nodes() {
		c.awaitLinks(node)
	}
	x.mend(f)
	x.flows(6)
}

// TestKilledWhileItStarts: a replica is killed again and again at any moment of its start and of its catching up.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	r := dice(t)
	x := newRush(t)
	c := x.c
	victim := c.followers()[0]
	f := x.inflict(&fault{what: "kills of " + c.id(victim), at: []int{victim}, breaks: true, refuses: true})
	for n := range rounds(5, 60) {
		c.kill(victim)
		c.launch(victim)
		if n%3 == 2 {
			c.await(victim)
		}
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond) // the moment
	}
	c.kill(victim)
	c.start(victim)
	c.caughtUp(victim)
	x.mend(f)
	x.flows(6)
	x.end()
}
