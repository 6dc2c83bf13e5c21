//go:build linux && amd64

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// clocks takes hold of the wall clocks of all replicas.
func (c *cluster) clocks() []*wallClock {
	c.t.Helper()
	var out []*wallClock
	for i := range c.replicas {
		out = append(out, newWallClock(c.t, c.at(i).edge.process))
	}
	return out
}

// wrongTimes are where a clock jumps to.
func wrongTimes() []time.Duration {
	return []time.Duration{time.Hour, -time.Hour, 0, 30 * time.Hour, -30 * time.Hour, 10 * time.Second, 0}
}

// TestWallClocksUnderLoad: under load, the wall clock of the leader jumps by hours, then that of a follower. Nothing comes
// of it: nobody else leads, no link is lost, no session ends, no client is refused.
func TestWallClocksUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	c := x.c
	clocks := c.clocks()
	before, leader := c.at(0).status(), c.leader()
	for _, i := range []int{leader, c.followers()[0]} {
		for _, off := range wrongTimes() {
			clocks[i].off(off)
			x.nextGrant(time.Now(), 0, 1, 2)
			x.flows(4)
		}
	}
	clocks[leader].off(time.Hour)
	await(t, "the log of "+c.id(leader)+" shows the wrong time: else none of this shows anything", func() bool {
		lines := strings.Split(c.at(leader).edge.out.String(), "time=")
		stamp, _, _ := strings.Cut(lines[len(lines)-1], " ")
		at, err := time.Parse(time.RFC3339, stamp)
		return err == nil && time.Until(at) > 50*time.Minute
	})
	if now := c.at(0).status(); now.Term != before.Term || c.leader() != leader {
		t.Errorf("term %d after %d, %s leads after %s", now.Term, before.Term, c.id(c.leader()), c.id(leader))
	} else if !slices.EqualFunc(now.Links, before.Links, func(a, b adminapi.Link) bool { return a.Generation == b.Generation && a.State == b.State }) {
		t.Errorf("links %+v after %+v", now.Links, before.Links)
	}
	for i := range c.replicas {
		for _, bad := range []string{"session is ended", "is lost", "storage failed"} {
			if c.at(i).edge.says(bad) {
				t.Errorf("%s says %q", c.id(i), bad)
			}
		}
	}
	x.end()
}

// TestDeadlinesAndWallClocks: with the wall clocks of all replicas jumping by hours, who waits is told that it waited too
// long when it did, and not before; with the leader standing still in between, later by that pause at most.
func TestDeadlinesAndWallClocks(t *testing.T) {
	t.Parallel()
	const limit, pause = 4 * time.Second, 2 * time.Second
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.timeout, l.heartbeat = limit, 3*time.Second // no link is lost by the pause
	c := newCluster(t, l, 3)
	clocks := c.clocks()
	c.at(0).start(ask{tag: "holds the slot"})
	await(t, "the slot is taken", func() bool { return b.Stats().Held == 1 })
	for _, stands := range []bool{false, true} {
		began := time.Now()
		var waiting []*flight
		for i := range c.replicas {
			waiting = append(waiting, c.at(i).start(ask{tag: fmt.Sprint("waits at ", i, stands)}))
		}
		c.at(0).awaitPending(len(waiting))
		for _, off := range wrongTimes() {
			for i, clock := range clocks {
				clock.off(off * time.Duration(1-i)) // one ahead, one right, one behind
			}
			c.at(0).status()
		}
		allowed := limit
		if stands {
			p := c.at(c.leader()).edge.process
			freeze(t, p)
			time.Sleep(pause) // the fault itself
			thaw(t, p)
			allowed += pause
		}
		for _, f := range waiting {
			a := f.wait(t)
			took := time.Since(began)
			a.wantError(t, 503, "queue_timeout")
			// An election may come on top, and this machine's own slowness.
			if took < limit || took > allowed+5*time.Second {
				t.Errorf("%s waited %v, want %v to %v", a.tag, took, limit, allowed)
			}
		}
	}
	b.LetAll()
	c.at(0).awaitIdle()
	c.agree()
}

// TestWallClockAndCertificates: replicas and nodes whose clocks are an hour apart still take each other's new certificates.
func TestWallClockAndCertificates(t *testing.T) {
	t.Parallel()
	c := newEmptyCluster(t, shared(newBackend(t, backend.Options{}), 2), 3)
	c.secure()
	for i := range c.replicas {
		c.launch(i)
	}
	c.awaitAll()
	c.startNodes()
	clocks := c.clocks()
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		clocks[c.leader()].off(off)
		for _, row := range append(c.paths, c.lines["n1"]) {
			for _, p := range row {
				p.Cut()
			}
		}
		c.leader()
		c.awaitLinks("n1")
		for i := range c.replicas {
			c.at(i).want(200, ask{tag: fmt.Sprint(off, " through ", c.id(i)), model: "ornith-fast"})
		}
	}
	c.agree()
}
