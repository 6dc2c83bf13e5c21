package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"iop/fsm"
)

// plan is what a world is made of. The configuration is kept in pieces that steps change.
type plan struct {
	edges, nodes int
	quorum       bool // more than half of the edges must reach each other, or nothing is committed
	pool         fsm.Pool
	providers    []fsm.ProviderConfig
	models       []fsm.ModelConfig
	principals   []fsm.PrincipalConfig
	noNode       map[fsm.NodeID]bool // out of the configuration
	noProvider   map[fsm.ProviderID]bool
	noModel      map[fsm.ModelID]bool
	document     int
}

func newPlan(rnd *rand.Rand) plan {
	p := plan{
		edges: 1, nodes: 1 + rnd.IntN(2), noNode: map[fsm.NodeID]bool{}, noProvider: map[fsm.ProviderID]bool{}, noModel: map[fsm.ModelID]bool{},
		pool: fsm.Pool{
			MaxQueue: 2 + rnd.IntN(8), QueueTimeout: fsm.Time(rnd.IntN(3)) * 5 * fsm.Second, StartupGrace: fsm.Time(rnd.IntN(3)) * fsm.Second,
			ReattachWindow: 5 * fsm.Second, FenceTimeout: 4 * fsm.Second,
		},
	}
	if rnd.IntN(2) == 0 {
		p.edges = 2 + rnd.IntN(2)
	}
	p.quorum = p.edges == 3 && rnd.IntN(3) > 0
	for i := range 1 + rnd.IntN(3) {
		long := []int{fsm.LongUncounted, 0, 1, 1}[rnd.IntN(4)]
		c := fsm.ProviderConfig{
			ID: fsm.ProviderID(fmt.Sprint("p", i)), Node: fsm.NodeID(fmt.Sprint("n", rnd.IntN(p.nodes))), Capacity: 1 + rnd.IntN(2),
			LongCapacity: long, Priority: rnd.IntN(2), Enabled: true, Can: fsm.AllNeeds,
		}
		if rnd.IntN(4) == 0 {
			c.ContextWindow = 1000
		}
		p.providers = append(p.providers, c)
	}
	for i := range 1 + rnd.IntN(3) {
		m := fsm.ModelConfig{ID: fsm.ModelID(fmt.Sprint("m", i))}
		for _, c := range p.providers {
			if len(m.Candidates) == 0 || rnd.IntN(3) > 0 {
				m.Candidates = append(m.Candidates, fsm.Candidate{Provider: c.ID, Served: "s" + string(c.ID)})
			}
		}
		p.models = append(p.models, m)
	}
	p.pool.Fair = rnd.IntN(2) == 0
	for _, id := range []fsm.PrincipalID{"ann", "bob"} {
		if rnd.IntN(2) == 0 {
			p.principals = append(p.principals, fsm.PrincipalConfig{ID: id, MaxInFlight: rnd.IntN(3), MaxQueued: rnd.IntN(4) - 1})
		}
	}
	return p
}

// config is the configuration as it is planned now.
func (p *plan) config() fsm.Config {
	c := fsm.Config{Pool: p.pool, Principals: slices.Clone(p.principals)}
	for i := range p.nodes {
		if id := fsm.NodeID(fmt.Sprint("n", i)); !p.noNode[id] {
			c.Nodes = append(c.Nodes, id)
		}
	}
	for _, x := range p.providers {
		if !p.noProvider[x.ID] {
			c.Providers = append(c.Providers, x)
		}
	}
	for _, m := range p.models {
		if !p.noModel[m.ID] {
			c.Models = append(c.Models, m)
		}
	}
	return c
}

// change alters one piece.
func (p *plan) change(s step) {
	i := int(s.a) % len(p.providers)
	x := &p.providers[i]
	switch s.b % 10 {
	case 0, 1, 2:
		x.Capacity = 1 + int(s.c)%3
	case 3:
		x.Enabled = !x.Enabled
	case 4:
		x.LongCapacity = int(s.c)%3 - 1
	case 5:
		p.noProvider[x.ID] = !p.noProvider[x.ID]
	case 6:
		x.Node = fsm.NodeID(fmt.Sprint("n", int(s.c)%p.nodes))
	case 7:
		p.pool.MaxQueue, p.pool.QueueTimeout = 1+int(s.c)%8, fsm.Time(s.c%4)*3*fsm.Second
	case 9:
		p.pool.Fair = s.c%2 == 0
		for i := range p.principals {
			p.principals[i].MaxInFlight, p.principals[i].MaxQueued = int(s.c/2)%4, int(s.c/8)%4-1
		}
	case 8:
		if s.c%2 == 0 {
			id := fsm.NodeID(fmt.Sprint("n", int(s.a)%p.nodes))
			p.noNode[id] = !p.noNode[id]
		} else {
			id := p.models[int(s.a)%len(p.models)].ID
			p.noModel[id] = !p.noModel[id]
		}
	}
	p.document++
}

// whole has everything in the configuration and enabled.
func (p *plan) whole() {
	clear(p.noNode)
	clear(p.noProvider)
	clear(p.noModel)
	for i := range p.providers {
		p.providers[i].Enabled = true
	}
	p.document++
}
