package admin

import (
	"slices"
	"strings"

	"iop/edged/adminapi"
	"iop/fsm"
)

// liveRows are the rows of one moment, by their ids.
type liveRows struct {
	providers map[string]adminapi.Provider
	nodes     map[string]adminapi.Node
	leases    map[uint64]adminapi.LiveLease
	waiters   map[string]adminapi.LiveWaiter
}

func showLiveLeases(list []fsm.LeaseGlance) []adminapi.LiveLease {
	out := make([]adminapi.LiveLease, 0, len(list))
	for i := range list {
		l := &list[i]
		out = append(out, adminapi.LiveLease{
			ID: uint64(l.Lease), Request: string(l.Request), Model: string(l.Model), Provider: string(l.Provider),
			Node: string(l.Node), Class: l.Class.String(), State: l.State.String(), Edge: string(l.Edge),
			Generation: uint64(l.Generation), GrantedAtMS: l.GrantedWall / millisecond,
		})
	}
	return out
}

// millisecond is in nanoseconds of the wall clock.
const millisecond = 1_000_000

func showLiveWaiters(g *fsm.Glance) []adminapi.LiveWaiter {
	sentences := make([]string, len(g.Holds))
	for i := range g.Holds {
		sentences[i] = waitsFor(&g.Holds[i])
	}
	out := make([]adminapi.LiveWaiter, 0, len(g.Waiters))
	for i := range g.Waiters {
		w := &g.Waiters[i]
		row := adminapi.LiveWaiter{
			Request: string(w.Request), Model: string(w.Model), Class: w.Class.String(), State: w.State.String(),
			Edge: string(w.Edge), Principal: string(w.Principal), Place: uint64(w.Enqueue),
			EnqueuedAtMS: w.EnqueuedWall / millisecond, WaitsFor: sentences[w.Hold],
		}
		if w.Deadline != 0 { // cluster time stands still without a leader; where it did not, this is the wall time of the deadline
			row.DeadlineAtMS = (w.EnqueuedWall + int64(w.Deadline-w.EnqueuedAt)) / millisecond
		}
		out = append(out, row)
	}
	return out
}

// renew makes rows what now has, and tells which are new or changed, in the order of now, and which are gone.
func renew[K ~string | ~uint64, V any](rows map[K]V, now []V, id func(*V) K, same func(a, b *V) bool) (changed []V, gone []K) {
	fresh := 0
	for i := range now {
		k := id(&now[i])
		old, known := rows[k]
		if !known {
			fresh++
		}
		if !known || !same(&old, &now[i]) {
			changed = append(changed, now[i])
			rows[k] = now[i]
		}
	}
	if len(rows) == len(now) { // an id is there once: nothing is gone
		return changed, nil
	}
	here := make(map[K]bool, len(now))
	for i := range now {
		here[id(&now[i])] = true
	}
	for k := range rows {
		if !here[k] {
			gone = append(gone, k)
			delete(rows, k)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

func sameProvider(a, b *adminapi.Provider) bool {
	x, y := *a, *b
	if !sameBound(x.Capacity, y.Capacity) || !sameBound(x.LongCapacity, y.LongCapacity) {
		return false
	}
	x.Capacity, x.LongCapacity, y.Capacity, y.LongCapacity = nil, nil, nil, nil
	return x == y
}

func sameBound(a, b *int) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameNode(a, b *adminapi.Node) bool {
	return a.ID == b.ID && a.Alias == b.Alias && a.Connected == b.Connected && a.Draining == b.Draining &&
		a.Version == b.Version && slices.Equal(a.Links, b.Links)
}

func same[V comparable](a, b *V) bool { return *a == *b }

func sortedRows[K comparable, V any](rows map[K]V, by func(a, b V) int) []V {
	out := make([]V, 0, len(rows))
	for _, v := range rows {
		out = append(out, v)
	}
	slices.SortFunc(out, by)
	return out
}

func byProvider(a, b adminapi.Provider) int { return strings.Compare(a.ID, b.ID) }
func byNode(a, b adminapi.Node) int         { return strings.Compare(a.ID, b.ID) }
