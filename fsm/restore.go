package fsm

import (
	"errors"
	"fmt"
	"slices"
)

// Image returns the whole state as rows.
func (m *Machine) Image() *Image {
	img := &Image{
		Index: m.index, Term: m.term, Now: m.now, Wall: m.wall,
		Revision: m.revision, Document: slices.Clone(m.document), Config: m.config.clone(),
		LastSession: m.lastSession, NextLease: m.nextLease, NextEnqueue: m.nextEnqueue, Granted: m.granted, Returned: m.returned,
		Level: m.level, Checked: m.checked,
	}
	for _, e := range sortedKeys(m.offers) {
		img.Offers = append(img.Offers, OfferRow{Edge: e, Offer: m.offers[e]})
	}
	for _, e := range sortedKeys(m.addresses) {
		img.Edges = append(img.Edges, EdgeRow{Edge: e, Address: m.addresses[e]})
	}
	for _, id := range sortedKeys(m.sessions) {
		img.Sessions = append(img.Sessions, m.sessions[id].row())
	}
	for _, id := range sortedKeys(m.nodes) {
		img.Nodes = append(img.Nodes, m.nodes[id].row())
	}
	for _, id := range sortedKeys(m.providers) {
		img.Providers = append(img.Providers, m.providers[id].row())
	}
	for _, id := range sortedKeys(m.models) {
		img.Models = append(img.Models, ModelRow{ID: id, Cursor: m.models[id].cursor})
	}
	img.Requests = m.requestRows()
	img.Joins = slices.Clone(m.joins)
	img.LastTurn, img.Metered, img.Principals, img.Usage = m.lastTurn, m.metered, m.principalRows(), m.Usage()
	img.LastOrder, img.Responses = m.vault.lastOrder, m.Responses()
	return img
}

// requestRows needs no sorting of leases, so that taking the image of a busy machine is short.
func (m *Machine) requestRows() []RequestRow {
	rows := make([]RequestRow, 0, len(m.requests))
	for _, id := range sortedKeys(m.nodes) {
		for _, l := range m.nodes[id].links {
			for r := l.firstHeld; r != nil; r = r.heldNext {
				rows = append(rows, r.row())
			}
		}
	}
	for _, r := range m.waiters() {
		rows = append(rows, r.row())
	}
	return rows
}

func (c *Config) clone() Config {
	out := *c
	out.Nodes = slices.Clone(c.Nodes)
	out.Providers = slices.Clone(c.Providers)
	out.Models = slices.Clone(c.Models)
	for i := range out.Models {
		out.Models[i].Candidates = slices.Clone(out.Models[i].Candidates)
	}
	out.Principals = slices.Clone(c.Principals)
	for i := range out.Principals {
		out.Principals[i].Models = slices.Clone(out.Principals[i].Models)
	}
	return out
}

func (s *session) row() SessionRow {
	row := SessionRow{
		ID: s.id, Edge: s.edge, Nonce: s.nonce, OpenedAt: s.openedAt, OpenedWall: s.openedWall,
		GraceUntil: s.graceUntil, NextSeq: s.nextSeq, AckBelow: s.ackBelow,
	}
	row.Batches = slices.Clone(s.batches) // stored outcomes are never modified
	return row
}

func (n *node) row() NodeRow {
	row := NodeRow{ID: n.id, Generation: n.generation, Instance: n.instance, Draining: n.draining, Removed: n.removed, Token: n.token}
	for _, l := range n.links {
		r := LinkRow{Generation: l.generation, Edge: l.edge, State: l.state, FenceUntil: l.fenceUntil, Apart: l.apart}
		if l.session != nil {
			r.Session = l.session.id
		}
		row.Links = append(row.Links, r)
	}
	return row
}

func (p *provider) row() ProviderRow {
	return ProviderRow{
		Config: p.ProviderConfig, Removed: p.removed, Draining: p.draining, Health: p.health, Cause: p.cause,
		Granted: p.granted, Returned: p.returned,
	}
}

func (r *request) row() RequestRow {
	row := RequestRow{
		ID: r.id, Fingerprint: r.fingerprint, Model: r.model, Class: r.class, InputTokens: r.inputTokens, Needs: r.needs,
		MaxWait: r.maxWait, Session: r.addressee(), Edge: r.lastEdge, State: r.state, Enqueue: r.enqueue,
		EnqueuedAt: r.enqueuedAt, EnqueuedWall: r.enqueuedWall, EnqueuedIndex: r.enqueuedIndex,
		DetachedUntil: r.detachedUntil, Excluded: slices.Clone(r.excluded), Direct: r.direct,
		Principal: r.who.id, Token: r.token, Metered: r.metered,
	}
	if !r.waits() {
		row.Lease, row.Provider, row.Served, row.Generation = r.lease, r.provider.ID, r.served, r.link.generation
		row.Node = r.link.node.id
		row.GrantedAt, row.GrantedWall, row.GrantedIndex = r.grantedAt, r.grantedWall, r.grantedIndex
	}
	return row
}

// Restore returns a machine with the state of an image. It fails if the rows contradict each other; what it returns
// has passed Check.
func Restore(img *Image) (*Machine, error) {
	m := New()
	m.index, m.term, m.now, m.wall = img.Index, img.Term, img.Now, img.Wall
	m.revision, m.document = img.Revision, slices.Clone(img.Document)
	m.lastSession = img.LastSession
	m.nextLease, m.nextEnqueue, m.granted, m.returned = img.NextLease, img.NextEnqueue, img.Granted, img.Returned
	for _, o := range img.Offers {
		m.offers[o.Edge] = o.Offer
	}
	m.level, m.checked = img.Level, img.Checked
	for _, row := range img.Edges {
		m.addresses[row.Edge] = row.Address
	}
	m.restoreSessions(img.Sessions)
	for _, row := range img.Nodes {
		m.nodes[row.ID] = &node{
			id: row.ID, generation: row.Generation, instance: row.Instance, draining: row.Draining, removed: row.Removed,
			token: row.Token,
		}
	}
	m.joins = slices.Clone(img.Joins)
	if err := m.restoreProviders(img.Providers); err != nil {
		return nil, err
	}
	m.config = img.Config.clone()
	m.configureModels(m.config.Models)
	m.configurePrincipals(m.config.Principals)
	for _, row := range img.Models {
		if mo := m.models[row.ID]; mo != nil {
			mo.cursor = row.Cursor
		}
	}
	if err := m.restoreLinks(img.Nodes); err != nil {
		return nil, err
	}
	m.restoreResponses(img)
	if err := m.restoreRequests(img.Requests); err != nil {
		return nil, err
	}
	m.restorePrincipals(img)
	m.restoreUsage(img)
	m.spansMoved = true
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("restore image at index %d: %w", img.Index, err)
	}
	return m, nil
}

func (m *Machine) restoreSessions(rows []SessionRow) {
	for _, row := range rows {
		s := &session{
			id: row.ID, edge: row.Edge, nonce: row.Nonce, openedAt: row.OpenedAt, openedWall: row.OpenedWall,
			graceUntil: row.GraceUntil, nextSeq: row.NextSeq, ackBelow: row.AckBelow, batches: slices.Clone(row.Batches),
		}
		m.sessions[s.id] = s
		m.edges[s.edge] = s
	}
}

func (m *Machine) restoreProviders(rows []ProviderRow) error {
	for _, row := range rows {
		n := m.nodes[row.Config.Node]
		if n == nil {
			return fmt.Errorf("restore provider %s: node %s is missing", row.Config.ID, row.Config.Node)
		}
		m.providers[row.Config.ID] = &provider{
			ProviderConfig: row.Config, node: n, removed: row.Removed, draining: row.Draining, health: row.Health,
			cause: row.Cause, granted: row.Granted, returned: row.Returned,
		}
	}
	m.relistProviders()
	return nil
}

func (m *Machine) restoreLinks(rows []NodeRow) error {
	for _, row := range rows {
		n := m.nodes[row.ID]
		for _, lr := range row.Links {
			l := &link{
				node: n, generation: lr.Generation, edge: lr.Edge, session: m.sessions[lr.Session], state: lr.State,
				fenceUntil: lr.FenceUntil, apart: lr.Apart,
			}
			if (l.session == nil) != (l.state == LinkFenced) {
				return fmt.Errorf("restore link %s/%d: it is %s and its session %d is wrong", n.id, l.generation, l.state, lr.Session)
			}
			n.links = append(n.links, l)
		}
	}
	return nil
}

// restoreRequests brings back waiters by enqueue number, and leases by lease id, so that each line is built in order.
func (m *Machine) restoreRequests(rows []RequestRow) error {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b RequestRow) int {
		if a.Lease < b.Lease || a.Lease == b.Lease && a.Enqueue < b.Enqueue {
			return -1
		}
		return 1
	})
	for i := range rows {
		row := &rows[i]
		r := &request{
			id: row.ID, fingerprint: row.Fingerprint, model: row.Model, class: row.Class, inputTokens: row.InputTokens,
			needs: row.Needs, maxWait: row.MaxWait, session: m.sessions[row.Session], lastEdge: row.Edge, state: row.State,
			enqueue: row.Enqueue, enqueuedAt: row.EnqueuedAt, enqueuedWall: row.EnqueuedWall,
			enqueuedIndex: row.EnqueuedIndex, detachedUntil: row.DetachedUntil, excluded: slices.Clone(row.Excluded),
			direct: row.Direct, token: row.Token, metered: row.Metered,
		}
		m.enter(r, row.Principal)
		if kept := m.vault.by[ResponseID(row.ID)]; kept != nil && kept.Background {
			r.response = kept
			if r.unfinished() && r.state == StateWaiting {
				r.session = m.cluster
			}
		}
		if row.Session != 0 && r.session == nil {
			return fmt.Errorf("restore request %s: session %d is missing", r.id, row.Session)
		}
		if m.requests[r.id] != nil {
			return fmt.Errorf("restore request %s: it is there twice", r.id)
		}
		m.requests[r.id] = r
		if err := m.restoreRequest(r, row); err != nil {
			return fmt.Errorf("restore request %s: %w", r.id, err)
		}
	}
	return nil
}

func (m *Machine) restoreRequest(r *request, row *RequestRow) error {
	if r.waits() {
		if (r.session == nil) != (r.state == StateDetached) {
			return errors.New("its state and its session contradict each other")
		}
		var fit []*candidate
		var dropped string
		if mo := m.models[r.model]; mo != nil {
			fit, dropped, _ = m.filter(mo, r)
		}
		m.wait(r, fit, dropped)
		return nil
	}
	r.lease, r.served = row.Lease, row.Served
	r.grantedAt, r.grantedWall, r.grantedIndex = row.GrantedAt, row.GrantedWall, row.GrantedIndex
	r.provider = m.providers[row.Provider]
	n := m.nodes[row.Node]
	if r.provider == nil || n == nil {
		return fmt.Errorf("its provider %s or node %s is missing", row.Provider, row.Node)
	}
	l := n.link(row.Generation)
	if l == nil {
		return fmt.Errorf("its generation %d of node %s is missing", row.Generation, n.id)
	}
	l.hold(r)
	m.leases[r.lease] = r
	r.provider.take(r.class)
	r.who.inFlight++
	return nil
}
