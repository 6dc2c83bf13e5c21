package fsm_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "iop/fsm"
)

var flagDepth = flag.Int("fsm.depth", 0, "how many commands the small worlds are followed; 0 = as many as are quick")

// TestSmallWorlds follows every order of every command in small worlds of three requests and two providers. States that
// differ only in numbers (indexes, lease numbers, generations, places) are followed once. After each command the
// invariants are checked and the naive model has its say; from each state everything can be brought to an end.
func TestSmallWorlds(t *testing.T) {
	worlds := []struct {
		name     string
		config   Config
		commands func(*Image) []Command
		depth    int
	}{
		{"requests", smallConfig(1, 2), requestCommands, 14},
		{"links", smallConfig(1, 1), func(im *Image) []Command {
			return slices.Concat(requestCommands(im), linkCommands(im, "e1"))
		}, 9},
		{"two edges", smallConfig(1, 1), func(im *Image) []Command {
			return slices.Concat(someRequestCommands(im), linkCommands(im, "e1"), linkCommands(im, "e2"), lifeCommands(im))
		}, 5},
		{"lost places", smallConfig(1, 1), func(im *Image) []Command {
			return slices.Concat(placeCommands(im), linkCommands(im, "e1"), lifeCommands(im))
		}, 5},
		{"operators", smallConfig(1, 1), func(im *Image) []Command {
			return slices.Concat(requestCommands(im), operatorCommands(im))
		}, 5},
	}
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			if *flagDepth > 0 {
				w.depth = *flagDepth
			} else if testing.Short() {
				w.depth = min(w.depth, 3)
			}
			explore(t, w.config, w.commands, w.depth)
		})
	}
}

// TestSmallWorldOfNewcomers follows identical requests at two edges, of which one is lost while its provider is busy.
func TestSmallWorldOfNewcomers(t *testing.T) {
	c := smallConfig(1, 1)
	c.Pool.MaxQueue = 4
	begin := beginning(t, c)
	for _, m := range []move{
		{&Admit{Request: "x", Model: "o"}, "e1"},
		{&Admit{Request: "y", Model: "o"}, "e1"},
		{&Expire{Term: 1}, ""},
		{&OpenSession{Edge: "e2", Nonce: 1}, ""},
		{&RegisterNode{Node: "n1", Instance: 1}, "e2"},
		{&NodeReady{Node: "n1", Generation: 2}, "e2"},
	} {
		if err := begin.command(m.command, m.edge); err != nil {
			t.Fatal(err)
		}
	}
	if begin.n.now == 0 {
		t.Fatal("no time has passed")
	}
	depth := 6
	if testing.Short() {
		depth = 4
	}
	exploreFrom(t, begin, newcomerCommands, depth)
}

// newcomerCommands: a waits at e1, b and c come at e2 with the same request, d with another.
func newcomerCommands(im *Image) []Command {
	one := Fingerprint{1}
	cs := []Command{
		&Admit{Request: "a", Model: "o", Fingerprint: one},
		proposed{&Admit{Request: "b", Model: "o", Fingerprint: one}, "e2"},
		proposed{&Admit{Request: "c", Model: "o", Fingerprint: one, MaxWait: 70}, "e2"},
		proposed{&Admit{Request: "d", Model: "o"}, "e2"},
		&OpenSession{Edge: "e1", Nonce: im.Index + 10},
		&RegisterNode{Node: "n1", Instance: 1},
		&Expire{Term: 1},
	}
	for _, r := range im.Requests {
		switch {
		case r.ID == "x":
			cs = append(cs, proposed{&Release{Lease: r.Lease}, r.Edge})
		case r.Lease == 0 && r.ID != "a":
			cs = append(cs, &Admit{Request: "a", Model: "o", Fingerprint: one, Place: r.Enqueue})
		}
	}
	for _, s := range im.Sessions {
		if s.Edge == "e1" {
			cs = append(cs, &EndSession{Edge: "e1", Session: s.ID, Alive: true, Since: im.Now}, &EndSession{Edge: "e1", Session: s.ID, Since: im.Now + 1})
		}
	}
	return cs
}

// smallConfig: p1 and p2, each on a node of its own; one model has both, another only p1; long requests count on p1.
func smallConfig(one, two int) Config {
	return Config{
		Pool:  Pool{MaxQueue: 2, QueueTimeout: 100, ReattachWindow: 50, FenceTimeout: 30},
		Nodes: []NodeID{"n1", "n2"},
		Providers: []ProviderConfig{
			{ID: "p1", Node: "n1", Capacity: one, LongCapacity: 1, Enabled: true, Can: AllNeeds},
			{ID: "p2", Node: "n2", Capacity: two, LongCapacity: LongUncounted, Enabled: true, Can: AllNeeds},
		},
		Models: []ModelConfig{
			{ID: "m", Candidates: []Candidate{{Provider: "p1", Served: "m"}, {Provider: "p2", Served: "m"}}},
			{ID: "o", Candidates: []Candidate{{Provider: "p1", Served: "o"}}},
		},
	}
}

// beginning is a world with its configuration, a session of e1, and both nodes ready there.
func beginning(t *testing.T, c Config) *pair {
	t.Helper()
	p := newPair(false)
	for _, cmd := range []Command{
		&ApplyConfig{Config: c}, &OpenSession{Edge: "e1", Nonce: 1},
		&RegisterNode{Node: "n1", Instance: 1}, &NodeReady{Node: "n1", Generation: 1},
		&RegisterNode{Node: "n2", Instance: 1}, &NodeReady{Node: "n2", Generation: 1},
	} {
		if err := p.command(cmd, "e1"); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// command applies one command, of the edge's session if it has one.
func (p *pair) command(c Command, edge EdgeID) error {
	e := &Entry{Index: p.n.index + 1, Term: 1, Elapsed: p.n.now}
	b := Batch{Commands: []Command{c}}
	for _, s := range p.n.sessions {
		if s.edge == edge {
			b.Session, b.Seq, b.AckBelow = s.id, s.nextSeq, s.nextSeq
		}
	}
	switch c.(type) {
	case *OpenSession, *EndSession, *ApplyConfig, *Drain:
		b.Session = 0
	case *Expire: // at the next deadline
		b.Session = 0
		if at, some := p.n.nextDeadline(); some {
			e.Elapsed = max(at, e.Elapsed)
		}
	}
	e.Batches = []Batch{b}
	if _, err := p.step(e); err != nil {
		return fmt.Errorf("%w\n%s", err, show(e))
	}
	return nil
}

// move is a command and the edge whose session proposes it; path is how a state was reached.
type move struct {
	command Command
	edge    EdgeID
}

func explore(t *testing.T, c Config, commands func(*Image) []Command, depth int) {
	exploreFrom(t, beginning(t, c), commands, depth)
}

func exploreFrom(t *testing.T, begin *pair, commands func(*Image) []Command, depth int) {
	type state struct {
		p    *pair
		path []string
	}
	seen := map[string]bool{outline(begin.m.Image()): true}
	level := []state{{begin, nil}}
	steps := 0
	for range depth {
		var next []state
		for _, st := range level {
			for _, mv := range moves(st.p, commands) {
				p := st.p.fork(t)
				path := append(slices.Clip(st.path), fmt.Sprintf("%s %T%+v", mv.edge, mv.command, mv.command))
				steps++
				if err := p.command(mv.command, mv.edge); err != nil {
					t.Fatalf("after\n%s\n%v", strings.Join(path, "\n"), err)
				}
				if key := outline(p.m.Image()); !seen[key] {
					seen[key] = true
					next = append(next, state{p, path})
				}
			}
		}
		for _, st := range level {
			if err := st.p.zero(); err != nil {
				t.Fatalf("end after\n%s\n%v", strings.Join(st.path, "\n"), err)
			}
		}
		level = next
	}
	for _, st := range level {
		if err := st.p.compare(); err != nil {
			t.Fatalf("after\n%s\n%v", strings.Join(st.path, "\n"), err)
		}
		if err := st.p.zero(); err != nil {
			t.Fatalf("end after\n%s\n%v", strings.Join(st.path, "\n"), err)
		}
	}
	t.Logf("%d commands, %d states", steps, len(seen))
}

// fork makes a world of its own in the same state: the machine through its image.
func (p *pair) fork(t *testing.T) *pair {
	m, err := Restore(p.m.Image())
	if err != nil {
		t.Fatal(err)
	}
	return &pair{m: m, n: p.n.clone()}
}

func (n *naive) clone() *naive {
	c := *n
	c.effects = nil
	c.offers, c.cursors = map[EdgeID]string{}, map[ModelID]ProviderID{}
	c.turns, c.usage = maps.Clone(n.turns), slices.Clone(n.usage)
	for k, v := range n.offers {
		c.offers[k] = v
	}
	for k, v := range n.cursors {
		c.cursors[k] = v
	}
	c.sessions, c.nodes, c.providers, c.requests = copied(n.sessions), copied(n.nodes), copied(n.providers), copied(n.requests)
	for _, s := range c.sessions {
		s.batches = slices.Clone(s.batches)
	}
	for _, x := range c.nodes {
		x.links = copied(x.links)
	}
	for _, r := range c.requests {
		r.Excluded = slices.Clone(r.Excluded)
	}
	return &c
}

func copied[T any](from []*T) []*T {
	to := make([]*T, len(from))
	for i, v := range from {
		x := *v
		to[i] = &x
	}
	return to
}

// outline is a state without its numbers: leases, places and generations are called by their rank.
func outline(im *Image) string {
	im.Index, im.Term, im.Wall, im.Revision, im.Document = 0, 0, 0, 0, nil
	im.NextLease, im.NextEnqueue, im.Granted, im.Returned = 0, 0, 0, 0
	im.Usage, im.Metered, im.LastTurn = nil, 0, 0
	slices.SortFunc(im.Principals, func(a, b PrincipalRow) int { return int(a.Turn) - int(b.Turn) })
	for i := range im.Principals {
		im.Principals[i].Turn = uint64(i)
	}
	edges := map[SessionID]EdgeID{}
	for i := range im.Sessions {
		s := &im.Sessions[i]
		edges[s.ID] = s.Edge
		s.GraceUntil -= min(s.GraceUntil, im.Now)
		s.ID, s.Nonce, s.OpenedAt, s.NextSeq, s.AckBelow, s.Batches = 0, 0, 0, 0, 0, nil
	}
	slices.SortFunc(im.Sessions, func(a, b SessionRow) int { return cmpString(string(a.Edge), string(b.Edge)) })
	ranks := map[string]Generation{}
	for i := range im.Nodes {
		x := &im.Nodes[i]
		x.Generation = 0
		for j := range x.Links {
			l := &x.Links[j]
			ranks[fmt.Sprint(x.ID, l.Generation)] = Generation(j + 1)
			l.Generation, l.Session, l.FenceUntil = Generation(j+1), 0, l.FenceUntil-im.Now
		}
	}
	for i := range im.Providers {
		im.Providers[i].Granted, im.Providers[i].Returned = 0, 0
	}
	byPlace := slices.Clone(im.Requests)
	slices.SortFunc(byPlace, func(a, b RequestRow) int { return int(a.Enqueue) - int(b.Enqueue) })
	for i := range im.Requests {
		r := &im.Requests[i]
		place := slices.IndexFunc(byPlace, func(o RequestRow) bool { return o.ID == r.ID })
		r.Enqueue, r.EnqueuedAt, r.EnqueuedIndex = Enqueue(place), r.EnqueuedAt-im.Now, 0
		r.DetachedUntil -= min(r.DetachedUntil, im.Now)
		r.Generation = ranks[fmt.Sprint(r.Node, r.Generation)]
		r.Lease, r.GrantedAt, r.GrantedIndex, r.Session = min(r.Lease, 1), 0, 0, 0
	}
	im.Now = 0
	return fmt.Sprintf("%v", *im)
}

func moves(p *pair, commands func(*Image) []Command) []move {
	var ms []move
	for _, c := range commands(p.n.image()) {
		edge := EdgeID("e1")
		switch c := c.(type) {
		case proposed:
			edge = c.by
			ms = append(ms, move{c.Command, edge})
			continue
		case *Release: // by its owner
			for _, r := range p.n.leases("", 0) {
				if r.Lease == c.Lease {
					edge = r.Edge
				}
			}
		}
		ms = append(ms, move{c, edge})
	}
	return ms
}

// proposed is a command of a certain edge.
type proposed struct {
	Command
	by EdgeID
}

// requestCommands: three requests of different kinds come, go, return and run out in every order.
func requestCommands(im *Image) []Command {
	cs := []Command{
		&Admit{Request: "a", Model: "m"},
		&Admit{Request: "b", Model: "o"},
		&Admit{Request: "c", Model: "m", Class: ClassLong, Fingerprint: Fingerprint{1}},
		&Expire{Term: 1},
	}
	for _, r := range im.Requests {
		if r.Lease == 0 {
			cs = append(cs, &Cancel{Request: r.ID})
		} else {
			cs = append(cs, &Release{Lease: r.Lease}, &Release{Lease: r.Lease, Requeue: true})
		}
	}
	return cs
}

// placeCommands: grants come to nothing, and who has lost a place claims it.
func placeCommands(im *Image) []Command {
	taken, place := map[Enqueue]bool{}, map[RequestID]Enqueue{}
	var cs []Command
	for _, r := range im.Requests {
		taken[r.Enqueue], place[r.ID] = true, r.Enqueue
		if r.Lease != 0 {
			cs = append(cs, &Release{Lease: r.Lease}, &Release{Lease: r.Lease, Requeue: true, Unsent: true})
		} else {
			cs = append(cs, &Evict{Request: r.ID})
		}
	}
	vacant := Enqueue(1)
	for taken[vacant] {
		vacant++
	}
	return append(cs, &Expire{Term: 1},
		&Admit{Request: "a", Model: "o"}, &Admit{Request: "b", Model: "o"}, &Admit{Request: "a", Model: "o", Place: vacant}, &Admit{Request: "b", Model: "o", Place: place["b"]},
		&Admit{Request: "c", Model: "m", Class: ClassLong, Fingerprint: Fingerprint{1}, Place: vacant},
	)
}

// someRequestCommands is a smaller choice, from both edges, with a request that comes again under another id.
func someRequestCommands(im *Image) []Command {
	cs := []Command{
		&Admit{Request: "a", Model: "m"},
		proposed{&Admit{Request: "a", Model: "m"}, "e2"},
		&Admit{Request: "c", Model: "o", Fingerprint: Fingerprint{1}},
		proposed{&Admit{Request: "d", Model: "o", Fingerprint: Fingerprint{1}}, "e2"},
		&Expire{Term: 1},
	}
	for _, r := range im.Requests {
		if r.Lease != 0 {
			cs = append(cs, &Release{Lease: r.Lease}, &Release{Lease: r.Lease, Requeue: true})
		} else {
			cs = append(cs, &Cancel{Request: r.ID})
		}
	}
	return cs
}

// linkCommands: links of both nodes with an edge come, become ready, are lost, superseded and reported.
func linkCommands(im *Image, edge EdgeID) []Command {
	var cs []Command
	add := func(c Command) { cs = append(cs, proposed{c, edge}) }
	for _, x := range im.Nodes {
		var running []LeaseID
		for _, r := range im.Requests {
			if r.Lease != 0 && r.Node == x.ID && len(running) == 0 {
				running = append(running, r.Lease)
			}
		}
		supersede := Generation(0)
		for _, l := range x.Links {
			switch {
			case l.State == LinkFenced:
				add(&LinkReport{Node: x.ID, Generation: l.Generation})
				add(&LinkReport{Node: x.ID, Generation: l.Generation, Running: running})
			case l.Edge != edge:
			default:
				supersede = l.Generation
				add(&LinkLost{Node: x.ID, Generation: l.Generation, Reason: ReasonHeartbeat})
				if l.State == LinkPending {
					add(&NodeReady{Node: x.ID, Generation: l.Generation})
				}
			}
		}
		add(&RegisterNode{Node: x.ID, Instance: 1, Supersede: supersede, Running: running})
	}
	return cs
}

// lifeCommands: sessions of both edges begin and end.
func lifeCommands(im *Image) []Command {
	cs := []Command{
		&OpenSession{Edge: "e1", Nonce: im.Index + 10},
		&OpenSession{Edge: "e2", Nonce: im.Index + 10},
	}
	for _, s := range im.Sessions {
		cs = append(cs, &EndSession{Edge: s.Edge, Session: s.ID, Reason: ReasonGoodbye, Alive: im.Index%2 == 0, Apart: im.Index%4 == 0, Since: Time(im.Index%3) * im.Now / 2})
	}
	return cs
}

// operatorCommands: health, drains and configurations.
func operatorCommands(im *Image) []Command {
	var cs []Command
	for i := range im.Providers {
		p := &im.Providers[i]
		cs = append(cs, &Drain{Provider: p.Config.ID, On: !p.Draining})
		for _, x := range im.Nodes {
			for _, l := range x.Links {
				if x.ID == p.Config.Node && l.State != LinkFenced {
					cs = append(cs, &SetHealth{Node: x.ID, Generation: l.Generation, Provider: p.Config.ID, Health: Degraded - p.Health})
				}
			}
		}
	}
	bigger, without, moved, gone := smallConfig(2, 2), smallConfig(1, 1), smallConfig(1, 1), smallConfig(1, 1)
	without.Providers = without.Providers[1:]
	moved.Providers[0].Node = "n2"
	gone.Nodes = gone.Nodes[1:]
	for _, c := range []Config{bigger, without, moved, gone, smallConfig(1, 1)} {
		cs = append(cs, &ApplyConfig{Config: c, Force: true})
	}
	return cs
}
