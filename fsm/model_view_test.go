package fsm_test

import (
	"cmp"
	"slices"

	. "iop/fsm"
)

// image is the whole state of the naive model, as the machine's own rows.
func (n *naive) image() *Image {
	im := &Image{
		Index: n.index, Term: n.term, Now: n.now, Wall: n.wall, Revision: n.revision, Document: n.document,
		Config: n.given, LastSession: n.lastSession, NextLease: n.lastLease + 1, NextEnqueue: n.lastEnqueue + 1, Granted: n.granted,
		Returned: n.returned, Level: n.level, Checked: n.checked,
	}
	for e, a := range n.addresses {
		im.Edges = append(im.Edges, EdgeRow{Edge: e, Address: a})
	}
	for e, o := range n.offers {
		im.Offers = append(im.Offers, OfferRow{Edge: e, Offer: o})
	}
	for _, s := range n.sessions {
		im.Sessions = append(im.Sessions, SessionRow{
			ID: s.id, Edge: s.edge, Nonce: s.nonce, OpenedAt: s.openedAt, OpenedWall: s.openedWall,
			GraceUntil: s.graceUntil, NextSeq: s.nextSeq, AckBelow: s.below, Batches: s.batches,
		})
	}
	for _, x := range n.nodes {
		row := NodeRow{ID: x.id, Generation: x.generation, Instance: x.instance, Draining: x.draining, Removed: x.removed, Token: x.token}
		for _, l := range x.links {
			row.Links = append(row.Links, LinkRow{
				Generation: l.generation, Edge: l.edge, Session: l.session, State: l.state, FenceUntil: l.fenceUntil, Apart: l.apart,
			})
		}
		im.Nodes = append(im.Nodes, row)
	}
	for _, p := range n.providers {
		im.Providers = append(im.Providers, ProviderRow{
			Config: p.ProviderConfig, Removed: p.removed, Draining: p.draining, Health: p.health, Cause: p.cause,
			Granted: p.granted, Returned: p.returned,
		})
	}
	for _, m := range n.config.Models {
		im.Models = append(im.Models, ModelRow{ID: m.ID, Cursor: n.cursors[m.ID]})
	}
	for _, r := range n.requests {
		im.Requests = append(im.Requests, r.RequestRow)
	}
	for _, j := range n.joins {
		im.Joins = append(im.Joins, *j)
	}
	im.LastTurn, im.Metered, im.Usage = n.lastTurn, n.metered, slices.Clone(n.usage)
	for id, turn := range n.turns {
		im.Principals = append(im.Principals, PrincipalRow{ID: id, Turn: turn})
	}
	sortImage(im)
	return im
}

func sortImage(im *Image) {
	slices.SortFunc(im.Principals, func(a, b PrincipalRow) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.Usage, func(a, b UsageRow) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Token, b.Token),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Provider, b.Provider))
	})
	slices.SortFunc(im.Offers, func(a, b OfferRow) int { return cmp.Compare(a.Edge, b.Edge) })
	slices.SortFunc(im.Edges, func(a, b EdgeRow) int { return cmp.Compare(a.Edge, b.Edge) })
	slices.SortFunc(im.Sessions, func(a, b SessionRow) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.Nodes, func(a, b NodeRow) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.Providers, func(a, b ProviderRow) int { return cmp.Compare(a.Config.ID, b.Config.ID) })
	slices.SortFunc(im.Models, func(a, b ModelRow) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(im.Requests, func(a, b RequestRow) int {
		return cmp.Or(
			-cmp.Compare(min(a.Lease, 1), min(b.Lease, 1)), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Generation, b.Generation),
			cmp.Compare(a.Lease, b.Lease), cmp.Compare(a.Enqueue, b.Enqueue),
		)
	})
}

// waiterViews are the waiters in their order, without what is only for people (Candidates).
func (n *naive) waiterViews() []RequestView {
	var vs []RequestView
	for i, r := range n.waiters() {
		vs = append(vs, RequestView{
			RequestRow: r.RequestRow, Position: i + 1, Deadline: n.deadline(r), Age: n.now - r.EnqueuedAt,
		})
	}
	return vs
}

func (n *naive) leaseViews() []RequestView {
	var vs []RequestView
	for _, r := range n.leases("", 0) {
		vs = append(vs, RequestView{RequestRow: r.RequestRow, Age: n.now - r.GrantedAt})
	}
	return vs
}

// nextDeadline is the earliest of all: waiters, fences, graces.
func (n *naive) nextDeadline() (Time, bool) {
	var ts []Time
	for _, r := range n.waiters() {
		if d := n.deadline(r); d != 0 {
			ts = append(ts, d)
		}
	}
	for _, x := range n.nodes {
		for _, l := range x.links {
			if l.state == LinkFenced {
				ts = append(ts, l.fenceUntil)
			}
		}
	}
	for _, s := range n.sessions {
		if s.graceUntil != 0 {
			ts = append(ts, s.graceUntil)
		}
	}
	for _, j := range n.joins {
		ts = append(ts, j.Forget)
	}
	if len(ts) == 0 {
		return 0, false
	}
	return slices.Min(ts), true
}

// snapshot is what operators see.
func (n *naive) snapshot() Snapshot {
	sn := Snapshot{
		Index: n.index, Term: n.term, Now: n.now, Wall: n.wall, Revision: n.revision, Granted: n.granted,
		Returned: n.returned, Queue: QueueView{Max: n.maxQueue()},
		Providers: []ProviderView{}, Nodes: []NodeView{}, Sessions: []SessionView{}, Models: []ModelView{},
	}
	for _, r := range n.waiters() {
		sn.Queue.Pending++
		if r.Class == ClassLong {
			sn.Queue.LongPending++
		}
		if r.State == StateDetached {
			sn.Queue.Detached++
		}
	}
	im := n.image()
	for i := range im.Providers {
		sn.Providers = append(sn.Providers, n.providerView(n.provider(im.Providers[i].Config.ID)))
	}
	for _, row := range im.Nodes {
		named := slices.ContainsFunc(n.providers, func(p *nProvider) bool { return p.Node == row.ID })
		if row.Removed && !named && len(row.Links) == 0 {
			continue
		}
		v := NodeView{ID: row.ID, Connected: n.node(row.ID).has(LinkReady), Generation: row.Generation, Draining: row.Draining}
		v.Links = []LinkView{}
		for _, l := range row.Links {
			v.Links = append(v.Links, LinkView{
				Node: row.ID, Edge: l.Edge, Generation: l.Generation, State: l.State,
				Leases: len(n.leases(row.ID, l.Generation)),
			})
		}
		sn.Nodes = append(sn.Nodes, v)
	}
	for _, s := range im.Sessions {
		sn.Sessions = append(sn.Sessions, SessionView{
			ID: s.ID, Edge: s.Edge, InGrace: s.GraceUntil != 0, OpenedWall: s.OpenedWall,
		})
	}
	for _, row := range im.Models {
		sn.Models = append(sn.Models, n.modelView(n.model(row.ID)))
	}
	return sn
}

func (n *naive) modelView(m *ModelConfig) ModelView {
	v := ModelView{ID: m.ID, Candidates: append([]Candidate{}, m.Candidates...)}
	slices.SortFunc(v.Candidates, func(a, b Candidate) int { return cmp.Compare(a.Provider, b.Provider) })
	for _, c := range m.Candidates {
		p := n.provider(c.Provider)
		x := n.node(p.Node)
		if p.Enabled && p.health == Healthy && !p.draining && !x.draining && x.has(LinkReady) {
			v.Available = true
		}
	}
	for _, r := range n.waiters() {
		if r.Model == m.ID {
			v.Queued++
		}
	}
	return v
}

func (n *naive) providerView(p *nProvider) ProviderView {
	x := n.node(p.Node)
	v := ProviderView{
		ID: p.ID, Node: p.Node, Connected: x.has(LinkReady), Health: p.health.String(), Cause: p.cause,
		Enabled: p.Enabled, Draining: p.draining || x.draining, Unlimited: p.Capacity == 0,
		Generation: x.generation, Capacity: p.Capacity, LongCapacity: p.LongCapacity, Priority: p.Priority,
		Granted: p.granted, Returned: p.returned,
	}
	v.InFlight, v.LongInFlight = n.inFlight(p.ID)
	for _, r := range n.leases("", 0) {
		if r.Provider == p.ID && r.State == StateFencing {
			v.Fencing++
		}
	}
	for _, r := range n.waiters() {
		fit, _ := n.candidates(r)
		if slices.Contains(fit, p) {
			v.Queued++
			if r.Class == ClassLong {
				v.LongQueued++
			}
		}
	}
	if !v.Connected {
		v.Health = "offline"
		v.Capacity, v.InFlight, v.Fencing, v.LongCapacity, v.LongInFlight = 0, 0, 0, 0, 0
	}
	v.Status = n.status(p, v)
	return v
}

func (n *naive) status(p *nProvider, v ProviderView) string {
	switch {
	case p.removed:
		return "removed"
	case !v.Connected:
		return "unavailable"
	case !p.Enabled:
		return "disabled"
	case p.health == Degraded:
		return "degraded"
	case v.Draining:
		return "draining"
	case p.Capacity > 0 && v.InFlight >= p.Capacity:
		return "full"
	}
	return "available"
}
