package sim

import (
	"cmp"
	"slices"

	"iop/fsm"
)

// node is a noded: its process, its links, and what runs at its backends.
type node struct {
	w        *world
	id       fsm.NodeID
	up       bool
	instance uint64
	conns    map[*edge]*conn
	olds     []*conn                 // beside them, for what still runs
	gone     map[fsm.Generation]int  // links lost or ended, and how often their emptiness was reported
	ended    map[fsm.Generation]bool // of those, which may live: nothing new begins
	past     map[fsm.LeaseID]verdict
	runs     []*call
	begun    int // calls so far
}

// call is a backend call in progress.
type call struct {
	lease      fsm.LeaseID
	provider   fsm.ProviderID
	generation fsm.Generation
	conn       *conn
	canceled   bool
	number     int
	late       bool // the gate's business, see countCalls
}

func (n *node) open() {
	if n.up {
		return
	}
	n.w.nonce++
	n.up, n.instance = true, n.w.nonce
	n.conns, n.gone, n.past, n.runs = map[*edge]*conn{}, map[fsm.Generation]int{}, map[fsm.LeaseID]verdict{}, nil
	n.olds, n.ended = nil, map[fsm.Generation]bool{}
	for _, e := range n.w.edges {
		n.dial(e)
	}
}

// kill ends the process; its backend calls end with their connections.
func (n *node) kill() {
	if !n.up {
		return
	}
	n.w.tally["nodes killed"]++
	n.up, n.runs = false, nil
	for _, c := range append(n.links(), n.olds...) {
		c.nodeGone = true
	}
	n.olds = nil
	n.conns = map[*edge]*conn{}
}

func (n *node) links() []*conn {
	out := make([]*conn, 0, len(n.conns))
	for _, c := range n.conns {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *conn) int { return cmp.Compare(a.edge.id, b.edge.id) })
	return out
}

// dial registers with an edge, naming all that runs.
func (n *node) dial(e *edge) {
	if !n.up || !e.up || n.conns[e] != nil {
		return
	}
	c := &conn{node: n, edge: e, instance: n.instance}
	n.conns[e] = c
	var running []fsm.LeaseID
	for _, r := range n.runs {
		running = append(running, r.lease)
	}
	c.named, c.namedAt = running, n.begun
	c.toEdge(func() {
		if e.up {
			e.register(c, running)
		}
	})
}

// taken is the edge's word that the link is registered.
func (n *node) taken(c *conn, g fsm.Generation, counted []fsm.LeaseID) {
	c.accepted, c.counted = true, counted
	for _, r := range n.runs {
		if r.number > c.namedAt && !n.w.see.holds(r.lease) {
			r.late = true
		}
	}
}

// settle ends what a registration named and the machine does not count, and says ready when that has ended.
func (n *node) settle() {
	for _, c := range n.links() {
		if !c.accepted || c.ready {
			continue
		}
		waits := false
		for _, r := range n.runs {
			if slices.Contains(c.named, r.lease) && !slices.Contains(c.counted, r.lease) {
				waits = true
				n.stray(r)
			}
		}
		if !waits {
			c.ready = true
			c.toEdge(func() { c.edge.isReady(c) })
		}
	}
}

// loses ends a connection at the node: what it started is canceled.
func (n *node) loses(c *conn) {
	if c.nodeGone {
		return
	}
	n.w.post(&message{pipe: &c.up, do: func() { c.edgeLoses(fsm.ReasonLinkLost, true) }})
	c.nodeGone = true
	if n.conns[c.edge] == c {
		delete(n.conns, c.edge)
	}
	n.olds = slices.DeleteFunc(n.olds, func(o *conn) bool { return o == c })
	if _, known := n.gone[c.generation]; c.generation > 0 && c.accepted && !known {
		n.gone[c.generation] = 0
	}
	delete(n.ended, c.generation)
	for _, r := range n.runs {
		r.canceled = r.canceled || r.conn == c
	}
}

// begin takes a run from an edge.
func (n *node) begin(c *conn, g fsm.Grant) {
	if !n.up || c.instance != n.instance {
		return
	}
	_, unseen := n.past[g.Lease]
	if c.nodeGone || unseen {
		return // the edge's cancel, or the end of the link, finds that it never ran
	}
	if n.ended[c.generation] {
		n.refuse(c, g.Lease)
		return
	}
	n.begun++
	r := &call{number: n.begun, lease: g.Lease, provider: g.Provider, generation: c.generation, conn: c, late: !n.w.see.holds(g.Lease)}
	n.runs = append(n.runs, r)
	n.w.tally["calls"]++
	n.w.countCalls(n, r)
}

// stop cancels a run, and answers at once if there is none.
func (n *node) stop(c *conn, lease fsm.LeaseID) {
	for _, r := range n.runs {
		if r.lease == lease {
			r.canceled = true
			return
		}
	}
	v, known := n.past[lease]
	if !known {
		v = verdict{why: fsm.ReasonNotRun, requeue: true}
		n.past[lease] = v
	}
	c.toEdge(func() { c.edge.finish(lease, v) })
}

// refuse answers a dispatch over a link that has ended.
func (n *node) refuse(c *conn, lease fsm.LeaseID) {
	v := verdict{why: fsm.ReasonNotRun, requeue: true}
	n.past[lease] = v
	n.w.tally["dispatches over an ended link"]++
	n.w.post(&message{lease: lease, do: func() {
		if !c.edgeGone {
			c.edge.finish(lease, v)
		}
	}})
}

// linkEnded takes the word that a generation is no longer current. Of one whose edge may live, what runs goes on.
func (n *node) linkEnded(c *conn, g fsm.Generation, why fsm.Reason) {
	own := c.generation == g
	switch {
	case own && why != fsm.ReasonSessionEnded:
		n.loses(c)
		return
	case own && n.conns[c.edge] == c:
		c.old = true
		delete(n.conns, c.edge)
		n.olds = append(n.olds, c)
	}
	for _, o := range append(n.links(), n.olds...) {
		if o.generation != g || !o.accepted {
			continue
		}
		n.w.tally["links ended elsewhere"]++
		n.ended[g] = true
		if _, known := n.gone[g]; !known {
			n.gone[g] = 0
		}
	}
	for _, r := range n.runs {
		if r.generation == g && why != fsm.ReasonSessionEnded {
			r.canceled = true
		}
	}
}

// stray ends a run that the machine said not to count.
func (n *node) stray(r *call) {
	if !r.canceled {
		n.w.tally["uncounted runs ended"]++
		if n.w.see.holds(r.lease) && !n.w.see.excused[r.lease] {
			n.w.failf("%s ends lease %d, which is counted", n.id, r.lease)
		}
	}
	r.canceled = true
}

// finish ends a backend call.
func (n *node) finish(i uint16, v verdict) {
	r, ok := pick(n.runs, i)
	if !ok {
		return
	}
	n.runs = slices.DeleteFunc(n.runs, func(o *call) bool { return o == r })
	if r.canceled {
		v = verdict{why: fsm.ReasonCanceled}
	}
	n.past[r.lease] = v
	if c := r.conn; !c.nodeGone {
		n.w.post(&message{lease: r.lease, do: func() {
			if !c.edgeGone {
				c.edge.finish(r.lease, v)
			}
		}})
	}
}

// report tells an edge what still runs of links that are gone. lie: 1 = nothing, 2 = more.
func (n *node) report(i uint16, lie int) {
	c, ok := pick(slices.DeleteFunc(n.links(), func(c *conn) bool { return !c.accepted || n.ended[c.generation] }), i)
	if !ok {
		return
	}
	gone := make([]fsm.Generation, 0, len(n.gone))
	for g := range n.gone {
		gone = append(gone, g)
	}
	slices.Sort(gone)
	for _, g := range gone {
		var running []fsm.LeaseID
		for _, r := range n.runs {
			if r.generation != g {
				continue
			}
			if lie == 1 {
				n.w.excuse(r.lease, "the node lied")
				continue
			}
			running = append(running, r.lease)
		}
		if lie == 2 {
			running = append(running, n.w.see.leases...)
		}
		if len(running) == 0 && lie == 0 {
			if n.gone[g]++; n.gone[g] >= 3 && !n.ended[g] {
				delete(n.gone, g)
			}
		}
		c.toEdge(func() {
			c.edge.propose(&fsm.LinkReport{Node: n.id, Generation: g, Running: running}, nil)
		})
	}
}
