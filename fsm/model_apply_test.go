package fsm_test

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	. "iop/fsm"
)

// apply is what one entry does to the naive model.
func (n *naive) apply(e *Entry) Result {
	n.index, n.term, n.wall = e.Index, e.Term, e.Wall
	n.now = max(n.now, e.Elapsed)
	n.effects, n.checks = nil, nil
	var res Result
	for i := range e.Batches {
		res.Outcomes = append(res.Outcomes, n.batch(&e.Batches[i]))
	}
	res.Effects, res.Checks = n.effects, n.checks
	return res
}

func all(code Code, count int) []Outcome {
	os := make([]Outcome, count)
	for i := range os {
		os[i].Code = code
	}
	return os
}

// batch (1.2, exactly once).
func (n *naive) batch(b *Batch) []Outcome {
	s := n.session(b.Session)
	if b.Session != 0 {
		switch {
		case s == nil:
			return all(SessionEnded, len(b.Commands))
		case b.Seq > s.nextSeq:
			return all(SequenceGap, len(b.Commands))
		case b.Seq < s.nextSeq:
			for _, old := range s.batches {
				if old.Seq == b.Seq && old.Sum == b.Sum {
					return old.Outcomes
				}
				if old.Seq == b.Seq {
					return all(SequenceCollision, len(b.Commands))
				}
			}
			return all(SequenceForgotten, len(b.Commands))
		}
	}
	outcomes := make([]Outcome, 0, len(b.Commands))
	for _, c := range b.Commands {
		outcomes = append(outcomes, n.command(b.Session, c))
	}
	if s != nil {
		s.nextSeq++
		s.batches = append(s.batches, BatchRow{Seq: b.Seq, Sum: b.Sum, Outcomes: outcomes})
		s.below = max(s.below, min(b.AckBelow, b.Seq))
		s.batches = slices.DeleteFunc(s.batches, func(r BatchRow) bool { return r.Seq < s.below })
	}
	return outcomes
}

func (n *naive) command(by SessionID, c Command) Outcome {
	o := n.decide(by, c)
	n.settle()
	n.tidy()
	return o
}

func (n *naive) decide(by SessionID, c Command) Outcome {
	s := n.session(by)
	switch c := c.(type) {
	case *OpenSession:
		return n.open(c)
	case *EndSession:
		if s := n.session(c.Session); s != nil && s.edge == c.Edge {
			n.end(s, c.Reason, c.Alive, c.Alive && c.Apart, c.Since)
			return Outcome{Code: Done}
		}
		return Outcome{Code: Stale}
	case *Drain:
		return n.drain(c)
	case *Evict:
		r := n.request(c.Request)
		switch {
		case r == nil:
			return Outcome{Code: Unknown}
		case !r.isWaiter():
			return Outcome{Code: Holds, Grant: r.grant()}
		}
		n.leave(r, RefusalEvicted)
		return Outcome{Code: Removed}
	case *ApplyConfig:
		return n.applyConfig(c)
	case *Expire:
		return n.expire(c)
	case *AddJoin:
		return n.addJoin(c)
	case *RedeemJoin:
		return n.redeemJoin(c)
	case *RaiseLevel:
		if c.Level > max(n.level, 1) {
			n.level = c.Level
			return Outcome{Code: Done}
		}
		return Outcome{Code: Stale}
	case *DigestCheck:
		if n.checked < c.Index && c.Index < n.index {
			n.checked = c.Index
			n.checks = append(n.checks, *c)
			return Outcome{Code: Done}
		}
		return Outcome{Code: Stale}
	}
	if s == nil {
		return Outcome{Code: SessionEnded}
	}
	switch c := c.(type) {
	case *Admit:
		return n.admit(s, c)
	case *Cancel:
		return n.cancel(s, c)
	case *Release:
		return n.release(s, c)
	case *RegisterNode:
		return n.register(s, c)
	case *Announce:
		if len(c.Address) > AddressMax {
			return Outcome{Code: Refused, Refusal: RefusalMalformed}
		}
		n.addresses[s.edge] = c.Address
		if c.Address == "" {
			delete(n.addresses, s.edge)
		}
		return Outcome{Code: Done}
	}
	return n.linkCommand(s, c)
}

func (n *naive) open(c *OpenSession) Outcome {
	for _, s := range n.sessions {
		if s.edge == c.Edge && s.nonce == c.Nonce {
			return Outcome{Code: SessionOpened, Session: s.id}
		}
	}
	for _, s := range slices.Clone(n.sessions) {
		if s.edge == c.Edge {
			n.end(s, ReasonSessionEnded, false, false, 0)
		}
	}
	n.lastSession = max(n.lastSession+1, SessionID(n.index))
	s := &nSession{
		id: n.lastSession, edge: c.Edge, nonce: c.Nonce, openedAt: n.now, openedWall: n.wall,
		nextSeq: 1, below: 1,
	}
	if n.config.Pool.StartupGrace > 0 {
		s.graceUntil = n.now + n.config.Pool.StartupGrace
	}
	n.sessions = append(n.sessions, s)
	return Outcome{Code: SessionOpened, Session: s.id}
}

// end (1.7).
func (n *naive) end(s *nSession, why Reason, alive, apart bool, since Time) {
	n.sessions = slices.DeleteFunc(n.sessions, func(x *nSession) bool { return x == s })
	for _, x := range n.nodes {
		for _, l := range x.links {
			if l.session == s.id && l.state != LinkFenced {
				l.apart = apart
				n.fence(x, l, ReasonSessionEnded, alive)
			}
		}
	}
	var ghosts []*nRequest
	for _, r := range n.waiters() {
		if r.Session == s.id {
			ghosts = append(ghosts, r)
		}
	}
	for _, r := range n.requests {
		if r.Session == s.id {
			r.Session = 0
			if r.isWaiter() {
				r.State, r.DetachedUntil = StateDetached, n.now+n.config.Pool.ReattachWindow
			}
		}
	}
	for _, ghost := range ghosts {
		for _, r := range n.waiters() {
			if since > 0 && r.State == StateWaiting && r.Enqueue > ghost.Enqueue && r.EnqueuedAt >= since && alike(r, ghost) {
				r.swap(ghost)
				break
			}
		}
	}
	n.effects = append(n.effects, Effect{Kind: EffectSessionEnded, Session: s.id, Edge: s.edge, Reason: why})
}

// alike tells whether two requests are the same, but for their ids.
func alike(a, b *nRequest) bool {
	return a.Fingerprint == b.Fingerprint && a.Fingerprint != Fingerprint{} && a.Principal == b.Principal && a.Model == b.Model && a.Class == b.Class
}

// swap has two waiters change places and deadlines.
func (r *nRequest) swap(o *nRequest) {
	was := *r
	r.Enqueue, r.EnqueuedAt, r.EnqueuedWall, r.EnqueuedIndex, r.MaxWait = o.Enqueue, o.EnqueuedAt, o.EnqueuedWall, o.EnqueuedIndex, o.MaxWait
	o.Enqueue, o.EnqueuedAt, o.EnqueuedWall, o.EnqueuedIndex, o.MaxWait = was.Enqueue, was.EnqueuedAt, was.EnqueuedWall, was.EnqueuedIndex, was.MaxWait
}

func (n *naive) admit(s *nSession, c *Admit) Outcome {
	if c.Request == "" || len(c.Request) > RequestIDMax || len(c.Principal) > NameMax || len(c.Token) > NameMax {
		return Outcome{Code: Refused, Refusal: RefusalMalformed}
	}
	if c.Provider != "" {
		return n.admitDirect(s, c)
	}
	if r := n.request(c.Request); r != nil {
		differ := r.Fingerprint != c.Fingerprint && r.Fingerprint != Fingerprint{} && c.Fingerprint != Fingerprint{}
		if !r.isWaiter() && r.Session == 0 && r.Edge == s.edge && r.Enqueue == c.Place && !differ {
			n.takeBack(r, ReasonNeverSent)
			return n.putBack(r, s)
		}
		if r.State != StateDetached || differ {
			return Outcome{Code: Refused, Refusal: RefusalInProgressElsewhere}
		}
		for _, o := range n.waiters() {
			if o.Enqueue == c.Place && o.Enqueue < r.Enqueue && alike(o, r) {
				o.swap(r)
			}
		}
		return n.reattach(s, r, c.Request)
	}
	place := n.lost(c.Place)
	for _, r := range n.waiters() {
		if place == 0 && r.State == StateDetached && r.Fingerprint == c.Fingerprint && c.Fingerprint != (Fingerprint{}) {
			return n.reattach(s, r, c.Request)
		}
	}
	r := &nRequest{RequestRow{
		Edge: s.edge, ID: c.Request, Fingerprint: c.Fingerprint, Model: c.Model, Class: c.Class, InputTokens: c.InputTokens,
		Needs: c.Needs, MaxWait: c.MaxWait, Session: s.id, State: StateWaiting, Enqueue: n.lastEnqueue + 1,
		EnqueuedAt: n.now, EnqueuedWall: n.wall, EnqueuedIndex: n.index,
		Principal: c.Principal, Token: c.Token, Metered: c.Metered,
	}}
	p, no := n.verdict(r)
	switch {
	case n.forbidden(c.Principal, c.Model):
		return Outcome{Code: Refused, Refusal: RefusalModelNotFound}
	case p != nil || no != RefusalNone || place > 0:
	case n.crowded(c.Principal):
		return Outcome{Code: Refused, Refusal: RefusalPrincipalLimit}
	case len(n.waiters()) >= n.maxQueue():
		return Outcome{Code: Refused, Refusal: RefusalQueueFull}
	}
	if place > 0 {
		r.Enqueue = place
		return n.place(r, false)
	}
	o := n.place(r, false)
	if o.Code != Refused {
		n.lastEnqueue++
	}
	if o.Code == Queued {
		o.Position = len(n.waiters())
	}
	return o
}

// lost is a place that was given and that nobody has, 0 if it is none.
func (n *naive) lost(place Enqueue) Enqueue {
	taken := slices.ContainsFunc(n.requests, func(r *nRequest) bool { return r.Enqueue == place })
	if taken || place > n.lastEnqueue {
		return 0
	}
	return place
}

// place gives a request that stands nowhere a slot or its place in the queue, or refuses it. One that comes back to an
// old place has its turn before those whose turn the same command brought about: they could not have used its slot.
// With again, it comes back: then those of its principal that wait, too, may have been held back by the principal's limit
// only, and the queue decides.
func (n *naive) place(r *nRequest, again bool) Outcome {
	p, no := n.verdict(r)
	if no != RefusalNone {
		return Outcome{Code: Refused, Refusal: no}
	}
	n.requests = append(n.requests, r)
	l := n.limit(r.Principal)
	_, others := n.counts(r.Principal)
	others-- // itself
	if p != nil && !(again && l != nil && l.MaxInFlight > 0 && others > 0) {
		return Outcome{Code: Granted, Grant: n.grant(r, p)}
	}
	r.State = StateWaiting
	n.round()
	return Outcome{Code: Queued, Enqueue: r.Enqueue}
}

func (n *naive) reattach(s *nSession, r *nRequest, id RequestID) Outcome {
	n.drop(r)
	r.ID, r.Session, r.Edge, r.DetachedUntil = id, s.id, s.edge, 0
	return n.place(r, true)
}

func (n *naive) cancel(s *nSession, c *Cancel) Outcome {
	r := n.request(c.Request)
	switch {
	case r == nil || r.State != StateDetached && r.Edge != s.edge:
		return Outcome{Code: Unknown}
	case r.isWaiter():
		n.drop(r)
		return Outcome{Code: Removed}
	}
	return Outcome{Code: Holds, Grant: r.grant()}
}

func (n *naive) release(s *nSession, c *Release) Outcome {
	for _, r := range n.leases("", 0) {
		if r.Lease != c.Lease || r.Edge != s.edge || r.State == StateFencing && c.Reason == ReasonLinkLost {
			continue
		}
		held := r.State == StateHeld && r.Session == s.id
		n.giveBack(r)
		if c.Requeue && c.Unsent {
			return n.putBack(r, s)
		}
		if !c.Requeue || !held {
			n.used(r, c.Reason, c.Usage)
			return Outcome{Code: Returned}
		}
		if r.Direct {
			return Outcome{Code: Refused, Refusal: RefusalUnavailable}
		}
		r.Excluded = append(r.Excluded, r.Provider)
		r.bare()
		return n.place(r, true)
	}
	return Outcome{Code: AlreadyReleased}
}

// bare takes a request's lease off it.
func (r *nRequest) bare() {
	r.Lease, r.Provider, r.Served, r.Generation, r.Node = 0, "", "", 0, ""
	r.GrantedAt, r.GrantedWall, r.GrantedIndex = 0, 0, 0
	r.State = StateWaiting
}

// putBack has a request whose lease was never used wait at its old place, for whoever asks for that. The queue decides.
func (n *naive) putBack(r *nRequest, s *nSession) Outcome {
	if r.Direct {
		return Outcome{Code: Refused, Refusal: RefusalUnavailable}
	}
	r.bare()
	r.Session, r.Edge = s.id, s.edge
	if _, no := n.verdict(r); no != RefusalNone {
		return Outcome{Code: Refused, Refusal: no}
	}
	n.requests = append(n.requests, r)
	n.round()
	return Outcome{Code: Queued, Enqueue: r.Enqueue}
}

func (n *naive) register(s *nSession, c *RegisterNode) Outcome {
	x := n.node(c.Node)
	if x == nil || x.removed {
		return Outcome{Code: Refused, Refusal: RefusalUnknownNode}
	}
	old := x.on(s.edge)
	if old != nil && old.generation != c.Supersede {
		return Outcome{Code: Refused, Refusal: RefusalDuplicate}
	}
	for _, l := range x.links {
		if l.state != LinkFenced && l != old && x.instance != c.Instance {
			return Outcome{Code: Refused, Refusal: RefusalDuplicate}
		}
	}
	if old != nil {
		n.fence(x, old, ReasonSuperseded, false)
	}
	o := Outcome{Code: Registered, Generation: x.generation + 1, Revision: n.revision}
	for _, l := range x.links {
		if l.state == LinkFenced && l.edge == s.edge {
			n.report(x, l, c.Running)
		}
	}
	for _, id := range c.Running { // what it still runs, in its own order
		for _, r := range n.leases(x.id, 0) {
			if r.Lease == id && !slices.Contains(o.Counted, id) {
				o.Counted = append(o.Counted, id)
			}
		}
	}
	x.generation++
	x.instance = c.Instance
	x.links = append(x.links, &nLink{generation: x.generation, edge: s.edge, session: s.id, state: LinkPending})
	return o
}

// report is the node's word on a fenced link.
func (n *naive) report(x *nNode, l *nLink, running []LeaseID) {
	l.fenceUntil = n.now + n.config.Pool.FenceTimeout
	for _, r := range n.leases(x.id, l.generation) {
		if !slices.Contains(running, r.Lease) {
			n.takeBack(r, ReasonReported)
		}
	}
}

// linkCommand are the commands that name a generation: one that is not current changes nothing.
func (n *naive) linkCommand(s *nSession, c Command) Outcome {
	find := func(id NodeID, g Generation) (*nNode, *nLink) {
		x := n.node(id)
		if x == nil {
			return nil, nil
		}
		return x, x.link(g)
	}
	switch c := c.(type) {
	case *NodeReady:
		if _, l := find(c.Node, c.Generation); l != nil && l.session == s.id {
			l.state = LinkReady
			return Outcome{Code: Done}
		}
	case *LinkLost:
		if x, l := find(c.Node, c.Generation); l != nil && l.session == s.id {
			n.fence(x, l, c.Reason, false)
			return Outcome{Code: Done}
		}
	case *LinkReport:
		if x, l := find(c.Node, c.Generation); l != nil && l.state == LinkFenced {
			n.report(x, l, c.Running)
			return Outcome{Code: Done}
		}
	case *SetHealth:
		p := n.provider(c.Provider)
		if _, l := find(c.Node, c.Generation); l != nil && l.state != LinkFenced && p != nil && p.Node == c.Node {
			p.health, p.cause = c.Health, c.Cause[:min(len(c.Cause), CauseMax)]
			return Outcome{Code: Done}
		}
	}
	return Outcome{Code: Stale}
}

func (n *naive) drain(c *Drain) Outcome {
	if c.Provider == "" {
		if x := n.node(c.Node); x != nil && !x.removed {
			x.draining = c.On
			n.tellDrained(x, c)
			return Outcome{Code: Done}
		}
	} else if p := n.provider(c.Provider); p != nil && (c.Node == "" || c.Node == p.Node) {
		p.draining = c.On
		n.tellDrained(n.node(p.Node), c)
		return Outcome{Code: Done}
	}
	return Outcome{Code: Unknown}
}

func (n *naive) tellDrained(x *nNode, c *Drain) {
	for _, l := range x.links {
		if l.state != LinkFenced {
			n.effects = append(n.effects, Effect{Kind: EffectDrained, Session: l.session, Node: x.id, Provider: c.Provider, On: c.On})
		}
	}
}

// applyConfig (1.8).
func (n *naive) applyConfig(c *ApplyConfig) Outcome {
	if !c.Force && c.Expected != n.revision {
		return Outcome{Code: Refused, Refusal: RefusalConflict, Revision: n.revision}
	}
	if c.Offer != "" {
		n.offers[c.Edge] = c.Offer
	}
	if n.revision > 0 && bytes.Equal(n.document, c.Document) && reflect.DeepEqual(n.given, c.Config) {
		return Outcome{Code: Applied, Revision: n.revision}
	}
	n.revision++
	n.document = bytes.Clone(c.Document)
	n.given, n.config = c.Config, resolve(c.Config)
	n.round()
	for _, id := range n.config.Nodes {
		if x := n.node(id); x == nil {
			n.nodes = append(n.nodes, &nNode{id: id})
		} else {
			x.removed = false
		}
	}
	for _, pc := range n.config.Providers {
		p := n.provider(pc.ID)
		if p == nil {
			p = &nProvider{}
			n.providers = append(n.providers, p)
		} else if inFlight, _ := n.inFlight(p.ID); p.Node != pc.Node && inFlight == 0 {
			*p = nProvider{}
		}
		p.ProviderConfig, p.removed = pc, false
	}
	for _, p := range n.providers {
		p.removed = !slices.ContainsFunc(n.config.Providers, func(pc ProviderConfig) bool { return pc.ID == p.ID })
	}
	for _, x := range n.nodes {
		if slices.Contains(n.config.Nodes, x.id) {
			continue
		}
		x.removed, x.token = true, TokenHash{}
		n.joins = slices.DeleteFunc(n.joins, func(j *JoinRow) bool { return j.Node == x.id })
		for _, l := range x.links {
			if l.state != LinkFenced {
				n.fence(x, l, ReasonRemoved, false)
			}
		}
	}
	for m := range n.cursors {
		if n.model(m) == nil {
			delete(n.cursors, m)
		}
	}
	n.effects = append(n.effects, Effect{Kind: EffectConfig, Revision: n.revision})
	return Outcome{Code: Applied, Revision: n.revision, Count: 1}
}

// resolve drops what names nothing.
func resolve(c Config) Config {
	out := Config{Pool: c.Pool, Nodes: slices.Clone(c.Nodes), Principals: c.Principals}
	for _, p := range c.Providers {
		if slices.Contains(c.Nodes, p.Node) {
			out.Providers = append(out.Providers, p)
		}
	}
	for _, m := range c.Models {
		kept := ModelConfig{ID: m.ID}
		for _, cd := range m.Candidates {
			if slices.ContainsFunc(out.Providers, func(p ProviderConfig) bool { return p.ID == cd.Provider }) {
				kept.Candidates = append(kept.Candidates, cd)
			}
		}
		out.Models = append(out.Models, kept)
	}
	return out
}

func (n *naive) expire(c *Expire) Outcome {
	if c.Term != n.term {
		return Outcome{Code: Stale}
	}
	o := Outcome{Code: Done}
	ws := slices.DeleteFunc(n.waiters(), func(r *nRequest) bool { d := n.deadline(r); return d == 0 || d > n.now })
	slices.SortFunc(ws, func(a, b *nRequest) int {
		return cmp.Or(cmp.Compare(n.deadline(a), n.deadline(b)), cmp.Compare(a.Enqueue, b.Enqueue))
	})
	for _, r := range ws {
		why := RefusalQueueTimeout
		if r.State == StateDetached {
			why = RefusalAbandoned
		}
		n.leave(r, why)
		o.Count++
	}
	for _, x := range n.nodes {
		for _, l := range x.links {
			if l.state != LinkFenced || l.fenceUntil > n.now {
				continue
			}
			for _, r := range n.leases(x.id, l.generation) {
				n.takeBack(r, ReasonFenceTimeout)
				o.Count++
			}
		}
	}
	for _, s := range n.sessions {
		if s.graceUntil != 0 && s.graceUntil <= n.now {
			s.graceUntil = 0
			o.Count++
		}
	}
	before := len(n.joins)
	n.joins = slices.DeleteFunc(n.joins, func(j *JoinRow) bool { return j.Forget <= n.now })
	o.Count += before - len(n.joins)
	return o
}
