package sim

import (
	"cmp"
	"slices"

	"iop/fsm"
)

// conn is one connection between a node's and an edge's process, from the dialling to its end. Each side ends it for
// itself and tells the other, which hears it if the pipe lives.
type conn struct {
	node       *node
	edge       *edge
	instance   uint64 // of the node's process
	generation fsm.Generation
	counted    []fsm.LeaseID
	accepted   bool // the node knows its generation
	ready      bool // the node said so
	nodeGone   bool
	edgeGone   bool
	bye        bool // takes no new run
	up, down   pipe // to the edge, to the node
}

func (c *conn) toEdge(do func()) {
	c.edge.w.post(&message{pipe: &c.up, do: func() {
		if !c.edgeGone {
			do()
		}
	}})
}

func (c *conn) toNode(do func()) {
	c.edge.w.post(&message{pipe: &c.down, do: func() {
		if !c.nodeGone {
			do()
		}
	}})
}

// conns are the edge's, by node.
func (e *edge) conns() []*conn {
	out := make([]*conn, 0, len(e.links))
	for _, c := range e.links {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int { return cmp.Compare(a.node.id, b.node.id) })
	return out
}

// alive tells whether the node answers a ping.
func (c *conn) alive() bool { return !c.nodeGone && !c.edgeGone && !c.up.dead && !c.down.dead }

// register takes a node in, as edged/nodelink does: an old link that answers refuses another process, one that does not
// is superseded.
func (e *edge) register(c *conn, running []fsm.LeaseID) {
	id := c.node.id
	old := e.links[id]
	if e.turns[id] || e.session == nil || old != nil && old.instance != c.instance && old.alive() {
		c.edgeLoses(0, false)
		return
	}
	e.turns[id] = true
	life := e.session
	e.propose(&fsm.RegisterNode{Node: id, Instance: c.instance, Supersede: e.last[id], Running: running}, func(o fsm.Outcome, err error) {
		e.turns[id] = false
		if err != nil || o.Code != fsm.Registered {
			e.w.tally["registrations refused"]++
			c.edgeLoses(0, false)
			return
		}
		e.w.tally["registrations"]++
		c.generation = o.Generation
		if old := e.links[id]; old != nil {
			old.edgeLoses(fsm.ReasonSuperseded, false)
		}
		e.last[id] = max(e.last[id], o.Generation)
		if c.edgeGone { // lost meanwhile
			e.propose(&fsm.LinkLost{Node: id, Generation: o.Generation, Reason: fsm.ReasonLinkLost}, nil)
			return
		}
		e.links[id] = c
		if o.Generation <= e.fenced[id] || e.session != life {
			c.edgeLoses(fsm.ReasonLinkLost, false)
			return
		}
		counted := slices.Clone(o.Counted)
		c.toNode(func() { c.node.taken(c, o.Generation, counted) })
	})
}

// isReady takes a node's word that it is ready.
func (e *edge) isReady(c *conn) {
	e.propose(&fsm.NodeReady{Node: c.node.id, Generation: c.generation}, func(o fsm.Outcome, err error) {
		if err != nil || o.Code != fsm.Done {
			c.edgeLoses(fsm.ReasonLinkLost, false)
		}
	})
}

// edgeLoses ends a connection at the edge. tell = the machine does not know yet.
func (c *conn) edgeLoses(why fsm.Reason, tell bool) {
	if c.edgeGone {
		return
	}
	e := c.edge
	c.edge.w.post(&message{pipe: &c.down, do: func() { c.node.loses(c) }})
	c.edgeGone = true
	if tell && c.generation > 0 && e.up {
		e.propose(&fsm.LinkLost{Node: c.node.id, Generation: c.generation, Reason: why}, nil)
	}
	if e.links[c.node.id] == c {
		delete(e.links, c.node.id)
	}
	for _, x := range e.exchanges() {
		if x.conn == c {
			e.finish(x.grant.Lease, verdict{why: fsm.ReasonLinkLost})
		}
	}
}

// linkEffect does what the machine says about links.
func (e *edge) linkEffect(x *fsm.Effect) {
	switch x.Kind {
	case fsm.EffectLinkFenced:
		e.fenced[x.Node] = max(e.fenced[x.Node], x.Generation)
		if c := e.links[x.Node]; c != nil && c.generation == x.Generation {
			c.edgeLoses(x.Reason, false)
		}
	case fsm.EffectSessionEnded:
		for _, c := range e.conns() {
			c.edgeLoses(fsm.ReasonSessionEnded, false)
		}
	}
}

// heartbeats ends at both sides what only one side has, or what carries nothing one way.
func (w *world) heartbeats() {
	for _, e := range w.edges {
		for _, c := range e.conns() {
			if !c.alive() {
				c.edgeLoses(fsm.ReasonHeartbeat, true)
			}
		}
	}
	for _, n := range w.nodes {
		for _, c := range n.links() {
			if !c.alive() || !c.edge.up {
				n.loses(c)
			}
		}
	}
}
