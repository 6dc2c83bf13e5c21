package admin

import (
	"net/http"

	"iop/edged/adminapi"
	"iop/fsm"
)

func (a *api) status(*http.Request) (any, error) {
	s, names, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	standing := a.Standing()
	return adminapi.Status{
		Edge:         string(a.Edge),
		Role:         standing.Role,
		Leader:       standing.Leader,
		Term:         s.Term,
		AppliedIndex: s.Index,
		Lag:          standing.Lag,
		Revision:     uint64(s.Revision),
		Queue:        adminapi.Queue{Pending: s.Queue.Pending, Max: s.Queue.Max, LongPending: s.Queue.LongPending},
		Providers:    showProviders(s, names),
		Links:        showLinks(s),
	}, nil
}

func (a *api) providers(*http.Request) (any, error) {
	s, names, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return adminapi.ProviderList{Providers: showProviders(s, names)}, nil
}

func (a *api) nodes(*http.Request) (any, error) {
	s, names, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return adminapi.NodeList{Nodes: a.showNodes(s, names)}, nil
}

func (a *api) models(*http.Request) (any, error) {
	s, _, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	return adminapi.ModelList{Models: showModels(s)}, nil
}

func (a *api) snapshot() (fsm.Snapshot, *names, error) {
	var s fsm.Snapshot
	names, err := a.look(func(m *fsm.Machine) { s = m.Snapshot() })
	return s, names, err
}

func showProviders(s fsm.Snapshot, names *names) []adminapi.Provider {
	out := make([]adminapi.Provider, 0, len(s.Providers))
	for _, p := range s.Providers {
		out = append(out, adminapi.Provider{
			Node:         string(p.Node),
			ID:           string(p.ID),
			Type:         string(names.providers[p.ID].provider.Type),
			Label:        names.label(p.ID),
			Connected:    p.Connected,
			Status:       p.Status,
			Health:       p.Health,
			Enabled:      p.Enabled,
			Draining:     p.Draining,
			Generation:   uint64(p.Generation),
			Capacity:     bound(p.Capacity, p.Connected && p.Unlimited),
			InFlight:     p.InFlight,
			LongCapacity: bound(max(p.LongCapacity, 0), p.Connected && p.LongCapacity == fsm.LongUncounted),
			LongInFlight: p.LongInFlight,
			Queued:       p.Queued,
			LongQueued:   p.LongQueued,
			Priority:     p.Priority,
			Cause:        p.Cause,
		})
	}
	return out
}

// bound is a number, or nil where there is none.
func bound(n int, none bool) *int {
	if none {
		return nil
	}
	return &n
}

func (a *api) showNodes(s fsm.Snapshot, names *names) []adminapi.Node {
	versions := a.Versions()
	out := make([]adminapi.Node, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		links := make([]adminapi.NodeLink, 0, len(n.Links))
		for _, l := range n.Links {
			links = append(links, adminapi.NodeLink{
				Edge: string(l.Edge), Generation: uint64(l.Generation), State: l.State.String(),
			})
		}
		out = append(out, adminapi.Node{
			ID:        string(n.ID),
			Alias:     names.aliases[n.ID],
			Connected: n.Connected,
			Draining:  n.Draining,
			Links:     links,
			Version:   versions[n.ID],
		})
	}
	return out
}

func showLinks(s fsm.Snapshot) []adminapi.Link {
	out := []adminapi.Link{}
	for _, n := range s.Nodes {
		for _, l := range n.Links {
			out = append(out, adminapi.Link{
				Node:       string(n.ID),
				Edge:       string(l.Edge),
				Generation: uint64(l.Generation),
				State:      l.State.String(),
				Leases:     l.Leases,
			})
		}
	}
	return out
}

func showModels(s fsm.Snapshot) []adminapi.Model {
	out := make([]adminapi.Model, 0, len(s.Models))
	for _, m := range s.Models {
		candidates := make([]adminapi.ModelCandidate, 0, len(m.Candidates))
		for _, c := range m.Candidates {
			candidates = append(candidates, adminapi.ModelCandidate{Provider: string(c.Provider), Served: c.Served})
		}
		out = append(out, adminapi.Model{
			ID: string(m.ID), Available: m.Available, Queued: m.Queued, Providers: candidates,
		})
	}
	return out
}
