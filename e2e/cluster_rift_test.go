package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/e2e/cut"
	"iop/edged/adminapi"
)

// rift is a way in which the network of a cluster breaks. l leads, f and g follow when it does.
type rift struct {
	name string
	// cut breaks it, and says whom a majority has lost (lost), and through whom runs may break because a node is out of
	// reach (far).
	cut func(c *cluster, l, f, g int) (lost, far []int)
	// nobody: no replica has a majority.
	nobody bool
	// same: the leader stays.
	same bool
}

// partitions are ways in which replicas lose each other. The bridge is the one in the middle of f and l.
func partitions() []rift {
	return []rift{
		{name: "the leader alone", cut: func(c *cluster, l, _, _ int) ([]int, []int) { c.apart(l); return []int{l}, nil }},
		{name: "a follower alone", same: true, cut: func(c *cluster, _, f, _ int) ([]int, []int) { c.apart(f); return []int{f}, nil }},
		{name: "all apart", nobody: true, cut: func(c *cluster, l, f, g int) ([]int, []int) {
			c.apart(l)
			c.apart(f)
			return []int{l, f, g}, nil
		}},
		{name: "a bridge", same: true, cut: func(c *cluster, l, f, _ int) ([]int, []int) {
			c.deaf(l, f)
			c.deaf(f, l)
			return []int{f}, nil
		}},
		{name: "nobody hears the leader", cut: func(c *cluster, l, f, g int) ([]int, []int) {
			c.deaf(l, f)
			c.deaf(l, g)
			return []int{l}, nil
		}},
		{name: "the leader hears nobody", cut: func(c *cluster, l, f, g int) ([]int, []int) {
			c.deaf(f, l)
			c.deaf(g, l)
			return []int{l}, nil
		}},
		{name: "the leader does not hear a follower", same: true, cut: func(c *cluster, l, f, _ int) ([]int, []int) {
			c.deaf(f, l)
			return []int{f}, nil
		}},
	}
}

// nodeCuts are ways in which the node n1 is out of reach.
func nodeCuts() []rift {
	away := func(c *cluster, at ...int) {
		for _, i := range at {
			c.lines["n1"][i].Swallow(cut.Up, cut.Down)
			c.lines["n1"][i].SwallowNew(cut.Up, cut.Down)
		}
	}
	return []rift{
		{name: "a node without the leader", same: true, cut: func(c *cluster, l, _, _ int) ([]int, []int) {
			away(c, l)
			return nil, []int{l}
		}},
		{name: "a node with one follower alone", same: true, cut: func(c *cluster, l, f, _ int) ([]int, []int) {
			away(c, l, f)
			return nil, []int{l, f}
		}},
		{name: "a node with the minority", same: true, cut: func(c *cluster, l, f, g int) ([]int, []int) {
			c.apart(f)
			away(c, l, g)
			return []int{f}, []int{l, g}
		}},
	}
}

// healAll mends the ways of the nodes too.
func (c *cluster) healAll() {
	c.heal()
	for _, row := range c.lines {
		for _, p := range row {
			p.Refuse(true)
			p.CutHeld()
			p.Pass()
		}
	}
}

// TestPartitionsUnderLoad: under load, the replicas lose each other in every way. Who has a majority goes on; who has none
// admits nothing and serves its streams to their end; who waits keeps its place; nothing is lost, doubled, stranded or
// above capacity, and all have the same state when it is over.
func TestPartitionsUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	for n := range rounds(1, 5) {
		for _, s := range partitions() {
			x.under(fmt.Sprint(s.name, " ", n), s)
			if t.Failed() {
				return
			}
		}
	}
	x.end()
}

// TestNodesCutOffUnderLoad: the same, where a node loses some of the replicas.
func TestNodesCutOffUnderLoad(t *testing.T) {
	t.Parallel()
	x := newRush(t)
	for n := range rounds(1, 5) {
		for _, s := range nodeCuts() {
			x.under(fmt.Sprint(s.name, " ", n), s)
			if t.Failed() {
				return
			}
		}
	}
	x.end()
}

// under lives through one rift.
func (x *rush) under(name string, s rift) {
	c, t := x.c, x.c.t
	t.Helper()
	l := c.leader()
	fs := c.followers()
	streams := x.halfway(name)
	var line *queueLine
	if !slices.ContainsFunc(nodeCuts(), func(n rift) bool { return n.name == s.name }) {
		line = x.lineUp(name, fs[0], l, fs[1], fs[0], l, fs[1])
	}
	f := x.inflict(&fault{what: name})
	began := time.Now()
	gone, far := s.cut(c, l, fs[0], fs[1])
	x.touch(f, far)
	rest := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return s.nobody || slices.Contains(gone, i) })
	if len(rest) > 0 {
		first, last := x.nextGrant(began, rest...)
		t.Logf("%s: the next grant after %v, through each that can after %v", name, first.Round(time.Millisecond), last.Round(time.Millisecond))
		if now := c.leader(rest...); s.same != (now == l) {
			t.Errorf("%s: %s leads after %s", name, c.id(now), c.id(l))
		}
	}
	for _, i := range gone {
		await(t, c.id(i)+" is not ready", func() bool { return get(t, c.at(i).edge.openai, "/readyz") == http.StatusServiceUnavailable })
	}
	if len(rest) > 0 && line != nil {
		for _, i := range gone {
			await(t, "who waits at "+c.id(i)+" is detached", func() bool {
				ws := line.waiters(rest[0])
				return len(ws) == 5 && !slices.ContainsFunc(ws, func(w adminapi.Waiter) bool { return w.Edge == c.id(i) && w.State != "detached" })
			})
		}
	}
	for _, i := range far {
		await(t, c.id(i)+" has lost the node n1", func() bool {
			return !slices.ContainsFunc(c.at(i).node("n1").Links, func(k linkRow) bool { return k.Edge == c.id(i) && k.State == "ready" })
		})
	}
	streams.end(t)
	c.healAll()
	for i := range c.replicas {
		c.caughtUp(i)
	}
	if line != nil {
		line.awaitWaiting(c.leader(), 5)
		line.serve()
	}
	x.mend(f)
	x.flows(6)
}

// touch says through which replicas runs may break from now on.
func (x *rush) touch(f *fault, at []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.at, f.breaks = at, len(at) > 0
}

// halves are streams that stand in their middle, one through each replica. They run at n2.
type halves struct {
	x    *rush
	all  []*flight
	want string
}

func (x *rush) halfway(name string) *halves {
	x.c.t.Helper()
	plan := backend.Plan{Tokens: 6, Hold: backend.AfterTokens, At: 2}
	h := &halves{x: x, want: string(slices.Concat(plan.Frames("/v1/chat/completions", "probe")...))}
	for i := range x.c.replicas {
		a := ask{model: "probe", tag: fmt.Sprint(name, " halfway ", i), stream: true}
		x.probe.SetFor(a.tag, plan)
		h.all = append(h.all, x.c.at(i).start(a))
	}
	await(x.c.t, "a stream runs through each replica", func() bool { return x.probe.Stats().Held == len(h.all) })
	return h
}

// end lets them go on and wants them whole.
func (h *halves) end(t testing.TB) {
	t.Helper()
	for _, f := range h.all {
		h.x.probe.LetTag(f.ask.tag)
		a := f.wait(t)
		a.want(t, 200)
		if string(a.body) != h.want || !a.clean {
			t.Errorf("%s got %q, want %q", a.tag, a.body, h.want)
		}
	}
}
