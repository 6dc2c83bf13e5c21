package top

import (
	"cmp"
	"strconv"

	"iop/edged/adminapi"
)

// waiter is a request in the queue, and how many are before it.
type waiter struct {
	adminapi.LiveWaiter
	position int // from 1
}

func newQueue() *list[waiter] {
	return &list[waiter]{
		name: "Queue", none: "Nobody waits.", by: -1,
		rows: waitersOf,
		id:   func(w waiter) string { return w.Request },
		words: func(w waiter) []string {
			return []string{w.Request, w.Model, w.Class, w.State, w.Edge, w.Principal, w.WaitsFor}
		},
		columns: []column[waiter]{
			{
				name: "PLACE", width: 6, right: true, text: func(_ *scene, w waiter, _ int) string { return strconv.Itoa(w.position) },
				compare: func(a, b waiter) int { return cmp.Compare(a.position, b.position) },
			},
			{
				name: "REQUEST", weight: 4, most: 40, text: func(s *scene, w waiter, width int) string { return s.id(s.clean(w.Request), width) },
				compare: func(a, b waiter) int { return cmp.Compare(a.Request, b.Request) },
			},
			{
				name: "MODEL", weight: 4, most: 40, text: func(s *scene, w waiter, _ int) string { return s.clean(w.Model) },
				compare: func(a, b waiter) int { return cmp.Compare(a.Model, b.Model) },
			},
			{
				name: "CLASS", width: 6, from: 72, text: func(s *scene, w waiter, _ int) string { return s.clean(w.Class) },
				compare: func(a, b waiter) int { return cmp.Compare(a.Class, b.Class) },
			},
			{
				name: "STATE", width: 8, text: func(s *scene, w waiter, _ int) string { return s.clean(w.State) }, paint: waiter.paint,
				compare: func(a, b waiter) int { return cmp.Compare(a.State, b.State) },
			},
			{
				name: "AGE", width: 6, right: true, text: func(s *scene, w waiter, _ int) string { return seconds(s.nowMS - w.EnqueuedAtMS) },
				compare: func(a, b waiter) int { return cmp.Compare(b.EnqueuedAtMS, a.EnqueuedAtMS) },
			},
			{
				name: "ENDS", width: 6, right: true, text: func(s *scene, w waiter, _ int) string { return w.ends(s) },
				compare: func(a, b waiter) int { return cmp.Compare(endless(a.DeadlineAtMS), endless(b.DeadlineAtMS)) },
			},
			{
				name: "EDGE", width: 12, from: 120, text: func(s *scene, w waiter, _ int) string { return s.clean(w.Edge) },
				compare: func(a, b waiter) int { return cmp.Compare(a.Edge, b.Edge) },
			},
			{
				name: "PRINCIPAL", width: 12, from: 140, text: func(s *scene, w waiter, _ int) string { return s.clean(w.Principal) },
				compare: func(a, b waiter) int { return cmp.Compare(a.Principal, b.Principal) },
			},
			{
				name: "WAITS FOR", weight: 6, text: func(s *scene, w waiter, _ int) string { return s.clean(w.WaitsFor) },
				compare: func(a, b waiter) int { return cmp.Compare(a.WaitsFor, b.WaitsFor) },
			},
		},
	}
}

func waitersOf(s *still) []waiter {
	rows := make([]waiter, len(s.waiters))
	for i, w := range s.waiters {
		rows[i] = waiter{LiveWaiter: w, position: i + 1}
	}
	return rows
}

func (w waiter) paint() paint {
	if w.State == "detached" {
		return busy
	}
	return plain
}

// ends tells in how long it ends if it gets nothing until then.
func (w waiter) ends(s *scene) string {
	if w.DeadlineAtMS == 0 {
		return "never"
	}
	return seconds(w.DeadlineAtMS - s.nowMS)
}

// endless puts "never" behind all times.
func endless(ms int64) uint64 { return uint64(ms) - 1 }
