package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

// client is one request of somebody, led by an edge's admission.
type client struct {
	w       *world
	edge    *edge
	ask     admission.Request
	cancel  context.CancelFunc
	left    bool // the client is gone
	crashed bool // its edge died
	retried bool

	mu    sync.Mutex
	ended bool
	err   error
}

// exchange is a request on a slot: what Dispatch waits for.
type exchange struct {
	client   *client
	grant    fsm.Grant
	conn     *conn // nil = never sent
	canceled bool  // the node was told to stop
	since    time.Time
	said     bool
	done     chan verdict
}

// verdict is how an exchange ended.
type verdict struct {
	why     fsm.Reason
	requeue bool
}

// come starts a request at an edge.
func (e *edge) come(r admission.Request) {
	if !e.up || e.session == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{w: e.w, edge: e, ask: r, cancel: cancel}
	e.w.clients = append(e.w.clients, c)
	e.w.tally["requests"]++
	adm := e.adm
	go func() {
		err := adm.Run(ctx, r, c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended, c.err = true, err
	}()
}

func (c *client) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// fate is how it ended, for the tally.
func (c *client) fate() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var refused *admission.Refused
	switch {
	case c.crashed:
		return "crashed"
	case errors.As(c.err, &refused):
		return "refused " + refused.Why.String()
	case c.err != nil:
		return c.err.Error()
	}
	return "served"
}

// Queued implements admission.Caller.
func (c *client) Queued(int) {}

// Dispatch implements admission.Caller.
func (c *client) Dispatch(_ context.Context, g fsm.Grant, _ time.Duration) (fsm.Reason, bool) {
	x := &exchange{client: c, grant: g, done: make(chan verdict, 1)}
	f := &c.w.fresh
	f.Lock()
	f.exchanges = append(f.exchanges, x)
	f.Unlock()
	v := <-x.done
	return v.why, v.requeue
}

// Used implements admission.Reporter.
func (c *client) Used() fsm.Usage { return fsm.Usage{Told: true, Prompt: 3, Completion: 2} }

func sortExchanges(list []*exchange) {
	slices.SortFunc(list, func(a, b *exchange) int { return cmp.Compare(a.grant.Lease, b.grant.Lease) })
}

// say ends the exchange.
func (x *exchange) say(v verdict) {
	if !x.said {
		x.said = true
		x.done <- v
	}
}

// leave is a client that goes.
func (c *client) leave() {
	if c.over() || c.left {
		return
	}
	c.left = true
	c.w.tally["clients left"]++
	for _, x := range c.edge.exchanges() {
		if x.client == c {
			c.edge.stop(x)
		}
	}
	c.cancel()
}

// exchanges are those of the edge, by lease.
func (e *edge) exchanges() []*exchange {
	out := make([]*exchange, 0, len(e.runs))
	for _, x := range e.runs {
		out = append(out, x)
	}
	sortExchanges(out)
	return out
}

// start sends an exchange to its node, if its link is there.
func (e *edge) start(x *exchange) {
	if !e.up {
		x.say(verdict{why: fsm.ReasonCanceled})
		return
	}
	c := e.links[x.grant.Node]
	if c == nil || c.generation != x.grant.Generation || c.edgeGone || c.bye {
		e.w.tally["no link for a grant"]++
		x.say(verdict{why: fsm.ReasonNotRun, requeue: true})
		return
	}
	e.runs[x.grant.Lease] = x
	x.conn = c
	e.w.post(&message{lease: x.grant.Lease, do: func() { c.node.begin(c, x.grant) }})
	if x.client.left {
		e.stop(x)
	}
}

// stop cancels an exchange; it ends when the node says so.
func (e *edge) stop(x *exchange) {
	if x.canceled || x.conn == nil {
		return
	}
	x.canceled, x.since = true, time.Now()
	c, lease := x.conn, x.grant.Lease
	c.toNode(func() { c.node.stop(c, lease) })
}

// finish takes the end of an exchange.
func (e *edge) finish(lease fsm.LeaseID, v verdict) {
	x := e.runs[lease]
	if x == nil {
		return
	}
	delete(e.runs, lease)
	if x.client.left {
		v.requeue = false
	}
	x.say(v)
	if x.conn != nil && x.conn.retired {
		x.conn.spend()
	}
}

// impatient gives up canceled exchanges of which the node said nothing for the fence timeout. That the call may go on
// behind it is what the timeout allows.
func (e *edge) impatient() {
	for _, x := range e.exchanges() {
		if x.canceled && time.Since(x.since) > time.Duration(e.w.plan.pool.FenceTimeout) {
			e.w.excuse(x.grant.Lease, "cancel unanswered for the fence timeout")
			e.finish(x.grant.Lease, verdict{why: fsm.ReasonCanceled})
		}
	}
}
