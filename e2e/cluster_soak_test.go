package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"
)

// soakFor is how long TestClusterSoak goes on: make soak-cluster SOAK=10m.
var soakFor = flag.Duration("soak.for", 20*time.Second, "how long TestClusterSoak inflicts faults")

// TestClusterSoak: faults at random, one after the other and two at a time, under constant load: replicas killed, frozen,
// stopped in order, cut off, deaf one way; nodes killed, and cut off from a replica; providers drained; and changes of
// the configuration all the time. In the end nothing is lost, doubled or stranded, all counters are 0, and memory,
// goroutines and files of each replica are back to where they were.
func TestClusterSoak(t *testing.T) {
	t.Parallel()
	r := dice(t)
	x := newRush(t)
	x.flows(60)
	x.stop()
	x.idle()
	before := x.prints()
	x.flow()
	s := soak{x: x, r: r, done: map[string]int{}}
	for end := time.Now().Add(*soakFor); time.Now().Before(end) && !t.Failed(); {
		s.step()
	}
	x.stop()
	tally := x.remember()
	x.idle()
	t.Logf("faults: %v", s.done)
	t.Logf("%v; refreshes by status: %v", tally, x.refreshed)
	x.likeBefore(before)
	x.c.sameStates()
}

// soak inflicts faults.
type soak struct {
	x    *rush
	r    *rand.Rand
	done map[string]int
}

// calamity does something and returns what mends it.
type calamity struct {
	name string
	do   func(s *soak) (mend func())
}

// calamities are what can happen.
func calamities() []calamity {
	return []calamity{
		{"kill", (*soak).killReplica},
		{"kill", (*soak).killReplica},
		{"freeze", (*soak).freezeReplica},
		{"stop", (*soak).stopReplica},
		{"apart", (*soak).cutOff},
		{"deaf", (*soak).deafen},
		{"node killed", (*soak).killNode},
		{"line cut", (*soak).cutLine},
		{"drain", (*soak).drain},
		{"majority killed", (*soak).killMajority},
	}
}

// step inflicts one fault, or two that overlap, and waits until all is well again.
func (s *soak) step() {
	x, t := s.x, s.x.c.t
	t.Helper()
	all := calamities()
	var before, after []func() // a replica is awaited with its links, and nobody undrains without a majority
	for k := range 1 + s.r.IntN(2) {
		c := all[s.r.IntN(len(all))]
		if k == 1 && !slices.Contains([]string{"node killed", "line cut", "drain"}, c.name) {
			break // two replicas at once are a fault of their own
		}
		s.done[c.name]++
		t.Logf("%.3f s: %s", time.Since(x.began).Seconds(), c.name)
		switch mend := c.do(s); {
		case c.name == "drain":
			after = append(after, mend)
		default:
			before = append([]func(){mend}, before...)
		}
		time.Sleep(time.Duration(100+s.r.IntN(2500)) * time.Millisecond) // the fault lasts
	}
	began := time.Now()
	for _, mend := range append(before, after...) {
		mend()
	}
	mended := since(began)
	x.c.leader()
	led := since(began)
	for _, n := range x.c.layout.nodes() {
		x.c.awaitLinks(n)
	}
	now := time.Now()
	x.mu.Lock()
	for _, f := range x.faults {
		if f.to.IsZero() {
			f.to = now
		}
	}
	x.mu.Unlock()
	x.flows(3)
	if all := since(began); all > 6*time.Second {
		t.Logf("slow: mended after %v, led after %v, linked after %v, served after %v", mended, led, now.Sub(began).Round(time.Millisecond), all)
	}
}

func (s *soak) any() int { return s.r.IntN(3) }

func (s *soak) killReplica() func() {
	i, c := s.any(), s.x.c
	s.x.inflict(&fault{what: "kill of " + c.id(i), at: []int{i}, breaks: true, refuses: true})
	c.kill(i)
	return func() { c.start(i); c.caughtUp(i) }
}

func (s *soak) killMajority() func() {
	o, c := othersOf(s.any()), s.x.c
	s.x.inflict(&fault{what: fmt.Sprintf("kill of %v", o), at: o, breaks: true, refuses: true})
	for _, i := range o {
		c.kill(i)
	}
	return func() {
		for _, i := range o {
			c.launch(i)
		}
		c.awaitAll()
	}
}

func (s *soak) freezeReplica() func() {
	i, c := s.any(), s.x.c
	s.x.inflict(&fault{what: "pause of " + c.id(i), at: []int{i}, breaks: true})
	freeze(c.t, c.at(i).edge.process)
	return func() { thaw(c.t, c.at(i).edge.process) }
}

func (s *soak) stopReplica() func() {
	i, c := s.any(), s.x.c
	s.x.inflict(&fault{what: "stop of " + c.id(i), at: []int{i}, refuses: true})
	c.stop(i)
	return func() { c.start(i); c.caughtUp(i) }
}

func (s *soak) cutOff() func() {
	i, c := s.any(), s.x.c
	s.x.inflict(&fault{what: c.id(i) + " cut off", at: []int{i}})
	c.apart(i)
	return c.heal
}

func (s *soak) deafen() func() {
	i, c := s.any(), s.x.c
	j := othersOf(i)[s.r.IntN(2)]
	s.x.inflict(&fault{what: fmt.Sprintf("%s does not hear %s", c.id(j), c.id(i)), at: []int{i, j}})
	c.deaf(i, j)
	return c.heal
}

func (s *soak) killNode() func() {
	n, c := []string{"n1", "n2"}[s.r.IntN(2)], s.x.c
	s.x.inflict(&fault{what: "kill of node " + n, nodes: true})
	c.nodes[n].kill()
	return func() { c.startNode(n) }
}

func (s *soak) cutLine() func() {
	n, i, c := []string{"n1", "n2"}[s.r.IntN(2)], s.any(), s.x.c
	s.x.inflict(&fault{what: fmt.Sprintf("%s cut off from %s", n, c.id(i)), at: []int{i}, breaks: true, nodes: true})
	p := c.lines[n][i]
	p.Refuse(true)
	p.Cut()
	return func() { p.Refuse(false) }
}

func (s *soak) drain() func() {
	p, i, c := []string{"p1", "p2"}[s.r.IntN(2)], s.any(), s.x.c
	s.x.inflict(&fault{what: "drain of " + p, nodes: true})
	tryDrain(c.own(i, 9080), p, true) // whether it could or not
	return func() {
		k := 0
		await(c.t, p+" is no longer drained", func() bool { k++; return tryDrain(c.own((i+k)%3, 9080), p, false) })
	}
}

// tryDrain asks an edge to drain a provider or to end that, and tells whether it did.
func tryDrain(address, provider string, on bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/drain", bytes.NewReader(render(map[string]any{"provider": provider, "on": on})))
	if err != nil {
		return false
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}
