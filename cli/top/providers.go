package top

import (
	"cmp"
	"fmt"
	"strconv"

	"iop/edged/adminapi"
)

// provider is a provider, and its node where that has something to say.
type provider struct {
	adminapi.Provider
	nodeDrains bool
}

func newProviders() *list[provider] {
	return &list[provider]{
		name: "Providers", none: "There is no provider in the configuration.", by: -1,
		rows: providersOf,
		id:   func(p provider) string { return p.ID },
		words: func(p provider) []string {
			return []string{p.ID, p.Node, p.Status, p.Health, p.Type, p.Label, p.Cause}
		},
		columns: []column[provider]{
			{
				name: "PROVIDER", weight: 3, most: 40, text: func(s *scene, p provider, _ int) string { return s.clean(p.ID) },
				compare: func(a, b provider) int { return cmp.Compare(a.ID, b.ID) },
			},
			{
				name: "NODE", weight: 2, most: 30, text: func(s *scene, p provider, _ int) string { return s.clean(p.Node) },
				compare: func(a, b provider) int { return cmp.Compare(a.Node, b.Node) },
			},
			{
				name: "STATUS", width: 11, text: func(s *scene, p provider, _ int) string { return s.clean(p.Status) }, paint: provider.paint,
				compare: func(a, b provider) int { return cmp.Compare(a.Status, b.Status) },
			},
			{
				name: "IN FLIGHT", width: 15, text: func(s *scene, p provider, width int) string { return s.bar(p.InFlight, p.Capacity, width) },
				compare: func(a, b provider) int { return cmp.Compare(a.InFlight, b.InFlight) },
			},
			{
				name: "OF IT LONG", width: 12, from: 72, text: func(s *scene, p provider, width int) string { return p.long(s, width) },
				compare: func(a, b provider) int { return cmp.Compare(a.LongInFlight, b.LongInFlight) },
			},
			{
				name: "QUEUED", width: 7, right: true, text: func(_ *scene, p provider, _ int) string { return strconv.Itoa(p.Queued) },
				compare: func(a, b provider) int { return cmp.Compare(a.Queued, b.Queued) },
			},
			{
				name: "LONG", width: 6, from: 100, right: true, text: func(_ *scene, p provider, _ int) string { return strconv.Itoa(p.LongQueued) },
				compare: func(a, b provider) int { return cmp.Compare(a.LongQueued, b.LongQueued) },
			},
			{
				name: "PRIO", width: 5, from: 100, right: true, text: func(_ *scene, p provider, _ int) string { return strconv.Itoa(p.Priority) },
				compare: func(a, b provider) int { return cmp.Compare(a.Priority, b.Priority) },
			},
			{name: "GEN", width: 5, from: 120, right: true, text: func(_ *scene, p provider, _ int) string { return strconv.FormatUint(p.Generation, 10) }},
			{name: "TYPE", width: 14, from: 120, text: func(s *scene, p provider, _ int) string { return s.clean(cmp.Or(p.Label, p.Type)) }},
			{name: "CAUSE", weight: 5, from: 140, text: func(s *scene, p provider, _ int) string { return s.clean(p.Cause) }},
		},
	}
}

func providersOf(s *still) []provider {
	drains := map[string]bool{}
	for _, n := range s.nodes {
		drains[n.ID] = n.Draining
	}
	rows := make([]provider, len(s.providers))
	for i, p := range s.providers {
		rows[i] = provider{Provider: p, nodeDrains: drains[p.Node]}
	}
	return rows
}

func (p provider) paint() paint {
	switch p.Status {
	case "available":
		return good
	case "full", "draining", "disabled":
		return busy
	}
	return bad
}

func (p provider) long(s *scene, width int) string {
	if p.LongCapacity == nil {
		if p.LongInFlight == 0 {
			return ""
		}
		return fmt.Sprintf("%d", p.LongInFlight)
	}
	return s.bar(p.LongInFlight, p.LongCapacity, width)
}
