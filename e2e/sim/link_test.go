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
	named      []fsm.LeaseID // by the registration
	namedAt    int           // how many calls had begun by then
	counted    []fsm.LeaseID
	accepted   bool // the node knows its generation
	ready      bool // the node said so
	nodeGone   bool
	edgeGone   bool
	bye        bool // takes no new run
	retired    bool // the edge's session ended; it carries on what runs
	old        bool // the node knows that
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

// oldConns are the edge's retired ones, by node and generation.
func (e *edge) oldConns() []*conn {
	out := make([]*conn, 0, len(e.old))
	for c := range e.old {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.node.id, b.node.id), cmp.Compare(a.generation, b.generation))
	})
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
		for _, g := range e.machine.Fenced(id) {
			c.ended(g, fsm.ReasonSessionEnded)
		}
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
	delete(e.old, c)
	for _, x := range e.exchanges() {
		if x.conn == c {
			if c.retired && why == fsm.ReasonSessionEnded {
				e.w.failf("the stream of lease %d is broken because the session of its living edge ended", x.grant.Lease)
			}
			e.finish(x.grant.Lease, verdict{why: fsm.ReasonLinkLost})
		}
	}
}

// ended tells the node that a generation, of whichever edge, is no longer current.
func (c *conn) ended(g fsm.Generation, why fsm.Reason) {
	c.toNode(func() { c.node.linkEnded(c, g, why) })
}

// linkFenced does what the machine says about links, of any edge: the node hears of it over the link that it has here.
func (e *edge) linkFenced(x *fsm.Effect) {
	if x.Edge == e.id {
		e.fenced[x.Node] = max(e.fenced[x.Node], x.Generation)
	}
	c := e.links[x.Node]
	switch {
	case c == nil:
	case c.generation != x.Generation:
		c.ended(x.Generation, x.Reason)
	case x.Reason == fsm.ReasonSessionEnded:
		c.retire()
	default:
		c.ended(x.Generation, x.Reason)
		c.edgeLoses(x.Reason, false)
	}
}

// retire takes a link out whose session ended while the edge lives; the transport stays until what runs over it has ended.
func (c *conn) retire() {
	e := c.edge
	delete(e.links, c.node.id)
	c.ended(c.generation, fsm.ReasonSessionEnded)
	c.retired = true
	if e.old[c] = true; !c.spend() {
		e.w.tally["transports kept"]++
	}
}

// spend closes a retired transport over which nothing runs any more.
func (c *conn) spend() bool {
	for _, x := range c.edge.runs {
		if x.conn == c {
			return false
		}
	}
	c.edgeLoses(fsm.ReasonSessionEnded, false)
	return true
}

// heartbeats ends at both sides what only one side has, or what carries nothing one way.
func (w *world) heartbeats() {
	for _, e := range w.edges {
		for _, c := range append(e.conns(), e.oldConns()...) {
			if !c.alive() {
				c.edgeLoses(fsm.ReasonHeartbeat, !c.retired)
			}
		}
	}
	for _, n := range w.nodes {
		for _, c := range append(n.links(), n.olds...) {
			if !c.alive() || !c.edge.up {
				n.loses(c)
			}
		}
	}
}
