package top

import (
	"cmp"
	"strconv"

	"iop/edged/adminapi"
)

func newLeases() *list[adminapi.LiveLease] {
	type lease = adminapi.LiveLease
	return &list[lease]{
		name: "Leases", none: "No request holds a slot.", by: -1,
		rows: func(s *still) []lease { return s.leases },
		id:   func(l lease) string { return strconv.FormatUint(l.ID, 10) },
		words: func(l lease) []string {
			return []string{strconv.FormatUint(l.ID, 10), l.Request, l.Model, l.Provider, l.Node, l.Class, l.State, l.Edge}
		},
		columns: []column[lease]{
			{
				name: "LEASE", width: 7, right: true, text: func(_ *scene, l lease, _ int) string { return strconv.FormatUint(l.ID, 10) },
				compare: func(a, b lease) int { return cmp.Compare(a.ID, b.ID) },
			},
			{
				name: "REQUEST", weight: 4, most: 40, text: func(s *scene, l lease, width int) string { return s.id(s.clean(l.Request), width) },
				compare: func(a, b lease) int { return cmp.Compare(a.Request, b.Request) },
			},
			{
				name: "MODEL", weight: 4, most: 40, text: func(s *scene, l lease, _ int) string { return s.clean(l.Model) },
				compare: func(a, b lease) int { return cmp.Compare(a.Model, b.Model) },
			},
			{
				name: "PROVIDER", weight: 3, most: 40, text: func(s *scene, l lease, _ int) string { return s.clean(l.Provider) },
				compare: func(a, b lease) int { return cmp.Compare(a.Provider, b.Provider) },
			},
			{
				name: "NODE", weight: 3, most: 30, from: 72, text: func(s *scene, l lease, _ int) string { return s.clean(l.Node) },
				compare: func(a, b lease) int { return cmp.Compare(a.Node, b.Node) },
			},
			{
				name: "CLASS", width: 6, from: 72, text: func(s *scene, l lease, _ int) string { return s.clean(l.Class) },
				compare: func(a, b lease) int { return cmp.Compare(a.Class, b.Class) },
			},
			{
				name: "STATE", width: 7, text: func(s *scene, l lease, _ int) string { return s.clean(l.State) }, paint: leasePaint,
				compare: func(a, b lease) int { return cmp.Compare(a.State, b.State) },
			},
			{
				name: "AGE", width: 6, right: true, text: func(s *scene, l lease, _ int) string { return seconds(s.nowMS - l.GrantedAtMS) },
				compare: func(a, b lease) int { return cmp.Compare(b.GrantedAtMS, a.GrantedAtMS) },
			},
			{
				name: "EDGE", width: 12, from: 120, text: func(s *scene, l lease, _ int) string { return s.clean(l.Edge) },
				compare: func(a, b lease) int { return cmp.Compare(a.Edge, b.Edge) },
			},
			{name: "GEN", width: 5, from: 120, right: true, text: func(_ *scene, l lease, _ int) string { return strconv.FormatUint(l.Generation, 10) }},
		},
	}
}

func leasePaint(l adminapi.LiveLease) paint {
	if l.State == "fencing" {
		return bad
	}
	return good
}
