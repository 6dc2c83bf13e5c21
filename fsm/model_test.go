package fsm_test

import (
	"slices"

	. "iop/fsm"
)

// naive is the second opinion on the machine: the rules of docs/SEMANTICS.md written down with slices and loops, no index
// and no shortcut. After each command it walks the whole queue from its head. It is slow, and should be obviously right.
type naive struct {
	index, term uint64
	now         Time
	wall        int64
	revision    Revision
	document    []byte
	given       Config // as it was given
	config      Config // without what names nothing

	lastSession       SessionID
	lastLease         LeaseID
	lastEnqueue       Enqueue
	granted, returned uint64

	offers    map[EdgeID]string
	addresses map[EdgeID]string
	level     uint32
	checked   uint64
	checks    []DigestCheck
	sessions  []*nSession
	nodes     []*nNode
	providers []*nProvider
	cursors   map[ModelID]ProviderID
	requests  []*nRequest
	joins     []*JoinRow
	turns     map[PrincipalID]uint64
	lastTurn  uint64
	usage     []UsageRow
	metered   uint64

	effects []Effect
}

type nSession struct {
	id             SessionID
	edge           EdgeID
	nonce          uint64
	openedAt       Time
	openedWall     int64
	graceUntil     Time
	nextSeq, below uint64
	batches        []BatchRow
}

type nNode struct {
	id                NodeID
	generation        Generation
	instance          uint64
	draining, removed bool
	token             TokenHash
	links             []*nLink
}

type nLink struct {
	generation Generation
	edge       EdgeID
	session    SessionID
	state      LinkState
	fenceUntil Time
	apart      bool
}

type nProvider struct {
	ProviderConfig
	removed, draining bool
	health            Health
	cause             string
	granted, returned uint64
}

type nRequest struct{ RequestRow }

func newNaive() *naive {
	return &naive{offers: map[EdgeID]string{}, addresses: map[EdgeID]string{}, cursors: map[ModelID]ProviderID{}, turns: map[PrincipalID]uint64{}}
}

// Look-ups: each a walk over everything.

func (n *naive) session(id SessionID) *nSession {
	for _, s := range n.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (n *naive) node(id NodeID) *nNode {
	for _, x := range n.nodes {
		if x.id == id {
			return x
		}
	}
	return nil
}

func (n *naive) provider(id ProviderID) *nProvider {
	for _, p := range n.providers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (n *naive) request(id RequestID) *nRequest {
	for _, r := range n.requests {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (n *naive) model(id ModelID) *ModelConfig {
	for i := range n.config.Models {
		if n.config.Models[i].ID == id {
			return &n.config.Models[i]
		}
	}
	return nil
}

func (x *nNode) link(g Generation) *nLink {
	for _, l := range x.links {
		if l.generation == g {
			return l
		}
	}
	return nil
}

// on is the node's current link with an edge.
func (x *nNode) on(edge EdgeID) *nLink {
	for _, l := range x.links {
		if l.edge == edge && l.state != LinkFenced {
			return l
		}
	}
	return nil
}

func (x *nNode) has(state ...LinkState) bool {
	for _, l := range x.links {
		if slices.Contains(state, l.state) {
			return true
		}
	}
	return false
}

func (r *nRequest) isWaiter() bool { return r.State == StateWaiting || r.State == StateDetached }

// waiters are the queue, in its order.
func (n *naive) waiters() []*nRequest {
	var ws []*nRequest
	for _, r := range n.requests {
		if r.isWaiter() {
			ws = append(ws, r)
		}
	}
	slices.SortFunc(ws, func(a, b *nRequest) int { return int(a.Enqueue) - int(b.Enqueue) })
	return ws
}

// leases of a link, of a node if the generation is 0, or of all nodes if the node is empty too; in order.
func (n *naive) leases(node NodeID, g Generation) []*nRequest {
	var ls []*nRequest
	for _, r := range n.requests {
		if !r.isWaiter() && (node == "" || r.Node == node) && (g == 0 || r.Generation == g) {
			ls = append(ls, r)
		}
	}
	slices.SortFunc(ls, func(a, b *nRequest) int { return int(a.Lease) - int(b.Lease) })
	return ls
}

// inFlight counts a provider's leases, and how many of them are long.
func (n *naive) inFlight(p ProviderID) (all, long int) {
	for _, r := range n.leases("", 0) {
		if r.Provider == p {
			all++
			if r.Class == ClassLong {
				long++
			}
		}
	}
	return all, long
}

func (n *naive) maxQueue() int {
	if n.config.Pool.MaxQueue <= 0 {
		return 16
	}
	return n.config.Pool.MaxQueue
}

// deadline of a waiter: 0 = none.
func (n *naive) deadline(r *nRequest) Time {
	wait := n.config.Pool.QueueTimeout
	if r.MaxWait > 0 && (wait <= 0 || r.MaxWait < wait) {
		wait = r.MaxWait
	}
	var at Time
	if wait > 0 {
		at = r.EnqueuedAt + wait
	}
	if r.State == StateDetached && (at == 0 || r.DetachedUntil < at) {
		at = r.DetachedUntil
	}
	return at
}

// Choice (1.4).

// candidates that suit a request, by provider id, or why there is none.
func (n *naive) candidates(r *nRequest) ([]*nProvider, Refusal) {
	m := n.model(r.Model)
	if m == nil {
		return nil, RefusalModelNotFound
	}
	var all, able, fit []*nProvider
	for _, c := range m.Candidates {
		if p := n.provider(c.Provider); !slices.Contains(r.Excluded, p.ID) {
			all = append(all, p)
		}
	}
	for _, p := range all {
		if p.Can&r.Needs == r.Needs {
			able = append(able, p)
		}
	}
	for _, p := range able {
		tooSmall := p.ContextWindow > 0 && p.ContextWindow < r.InputTokens
		if !tooSmall && (r.Class != ClassLong || p.LongCapacity != 0) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 && len(all) < len(m.Candidates) {
		return nil, RefusalUnavailable
	}
	slices.SortFunc(fit, func(a, b *nProvider) int { return cmpString(string(a.ID), string(b.ID)) })
	switch {
	case len(all) == 0:
		return nil, RefusalUnavailable
	case len(able) == 0:
		return nil, RefusalUnsupported
	case len(fit) == 0:
		return nil, RefusalContextTooLong
	}
	return fit, RefusalNone
}

func cmpString(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

type standing int

const (
	dead standing = iota
	drained
	recovering
	full
	dispatchable
)

// stand is where a candidate stands for a request at this moment.
func (n *naive) stand(p *nProvider, r *nRequest) standing {
	x := n.node(p.Node)
	l, s := x.on(r.Edge), n.session(r.Session)
	ready := l != nil && l.state == LinkReady
	switch all, long := n.inFlight(p.ID); {
	case !p.Enabled || p.removed || p.health == Degraded:
		return dead
	case p.draining || x.draining:
		if ready {
			return drained
		}
		return dead
	case !ready:
		if l != nil || s.graceUntil != 0 {
			return recovering
		}
		return dead
	case p.Capacity > 0 && all >= p.Capacity:
		return full
	case r.Class == ClassLong && p.LongCapacity > 0 && long >= p.LongCapacity:
		return full
	case n.atLimit(r):
		return full
	}
	return dispatchable
}

// verdict: a provider, or RefusalNone to wait, or why neither.
func (n *naive) verdict(r *nRequest) (*nProvider, Refusal) {
	fit, no := n.candidates(r)
	if no != RefusalNone {
		return nil, no
	}
	best := dead
	var free []*nProvider
	for _, p := range fit {
		st := n.stand(p, r)
		best = max(best, st)
		if st == dispatchable {
			free = append(free, p)
		}
	}
	switch best {
	case dead:
		return nil, RefusalUnavailable
	case drained:
		return nil, RefusalDraining
	case recovering, full:
		return nil, RefusalNone
	}
	return n.choose(r.Model, free), RefusalNone
}

// choose: lowest in-flight, then lowest priority, then the next in the ring after the model's cursor.
func (n *naive) choose(m ModelID, free []*nProvider) *nProvider {
	var tied []*nProvider
	for _, p := range free {
		if len(tied) > 0 {
			a, _ := n.inFlight(p.ID)
			b, _ := n.inFlight(tied[0].ID)
			if a > b || a == b && p.Priority > tied[0].Priority {
				continue
			}
			if a < b || p.Priority < tied[0].Priority {
				tied = nil
			}
		}
		tied = append(tied, p)
	}
	for _, p := range tied {
		if p.ID > n.cursors[m] {
			return p
		}
	}
	return tied[0]
}

func (n *naive) grant(r *nRequest, p *nProvider) Grant {
	n.lastLease++
	n.granted++
	p.granted++
	n.cursors[r.Model] = p.ID
	r.State, r.Lease, r.Provider, r.Node = StateHeld, n.lastLease, p.ID, p.Node
	r.Generation = n.node(p.Node).on(r.Edge).generation
	for _, c := range n.model(r.Model).Candidates {
		if c.Provider == p.ID {
			r.Served = c.Served
		}
	}
	r.GrantedAt, r.GrantedWall, r.GrantedIndex = n.now, n.wall, n.index
	n.served(r)
	return r.grant()
}

func (r *nRequest) grant() Grant {
	return Grant{
		Lease: r.Lease, Request: r.ID, Model: r.Model, Class: r.Class, Provider: r.Provider, Node: r.Node,
		Generation: r.Generation, Served: r.Served,
	}
}

// settle walks the queue (1.5): who can have a slot gets it, who has nothing to hope for leaves.
func (n *naive) settle() {
	for _, r := range n.waiters() {
		if r.State == StateDetached {
			continue
		}
		if _, no := n.verdict(r); no != RefusalNone {
			n.leave(r, no)
		}
	}
	for n.grantOne() {
	}
}

// grantOne gives the first in the queue who can have a slot that slot.
func (n *naive) grantOne() bool {
	for _, r := range n.inTurn() {
		if r.State == StateDetached {
			continue
		}
		if p, _ := n.verdict(r); p != nil {
			n.effects = append(n.effects, Effect{Kind: EffectGranted, Session: r.Session, Edge: r.Edge, Request: r.ID, Grant: n.grant(r, p)})
			return true
		}
	}
	return false
}

func (n *naive) drop(r *nRequest) {
	n.requests = slices.DeleteFunc(n.requests, func(x *nRequest) bool { return x == r })
	n.round()
}

// leave ends a waiter.
func (n *naive) leave(r *nRequest, why Refusal) {
	n.drop(r)
	n.effects = append(n.effects, Effect{Kind: EffectEnded, Session: r.Session, Edge: r.Edge, Request: r.ID, Refusal: why})
}

// giveBack ends a lease.
func (n *naive) giveBack(r *nRequest) { // its usage is counted by who knows it
	n.returned++
	n.provider(r.Provider).returned++
	n.drop(r)
}

// takeBack ends a lease by something else than its release.
func (n *naive) takeBack(r *nRequest, why Reason) {
	n.giveBack(r)
	n.used(r, why, Usage{})
	n.effects = append(n.effects, Effect{
		Kind: EffectReturned, Session: r.Session, Edge: r.Edge, Request: r.ID, Grant: r.grant(), Reason: why,
		Node: r.Node, Generation: r.Generation,
	})
}

// fence (1.6): nothing goes over the link any more; its leases count on only while another link of the node lives.
func (n *naive) fence(x *nNode, l *nLink, why Reason, alive bool) {
	n.effects = append(n.effects, Effect{
		Kind: EffectLinkFenced, Session: l.session, Edge: l.edge, Node: x.id, Generation: l.generation, Reason: why,
	})
	wasReady := l.state == LinkReady
	l.state, l.session, l.fenceUntil = LinkFenced, 0, n.now+n.config.Pool.FenceTimeout
	for _, r := range n.leases(x.id, l.generation) {
		r.State = StateFencing
	}
	if !alive && !x.has(LinkPending, LinkReady) {
		for _, r := range n.leases(x.id, 0) {
			if !x.link(r.Generation).apart {
				n.takeBack(r, why)
			}
		}
	}
	if wasReady && !x.has(LinkReady) || !x.has(LinkPending, LinkReady) {
		for _, p := range n.providers {
			if p.Node == x.id {
				p.health, p.cause = Healthy, ""
			}
		}
	}
}

// tidy forgets what nothing names any more; nodes are never forgotten, or a generation could be given twice.
func (n *naive) tidy() {
	n.providers = slices.DeleteFunc(n.providers, func(p *nProvider) bool {
		all, _ := n.inFlight(p.ID)
		return p.removed && all == 0
	})
	for _, x := range n.nodes {
		x.links = slices.DeleteFunc(x.links, func(l *nLink) bool {
			return l.state == LinkFenced && len(n.leases(x.id, l.generation)) == 0
		})
	}
}
