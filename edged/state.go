package edged

import (
	"iop/edged/metrics"
	"iop/fsm"
	"iop/storage"
)

// state is what the gauges show at a scrape.
func state(store *storage.Store) metrics.State {
	var snap fsm.Snapshot
	store.View(func(m *fsm.Machine) { snap = m.Snapshot() })
	stats := store.Stats()
	s := metrics.State{
		QueuePending: snap.Queue.Pending, QueueMax: snap.Queue.Max, QueueLong: snap.Queue.LongPending,
		QueueDetached: snap.Queue.Detached, AppliedIndex: snap.Index, Term: snap.Term,
		Revision: uint64(snap.Revision), Leader: stats.Role == storage.RoleLeader, LogBytes: stats.LogFileBytes,
	}
	for i := range snap.Providers {
		p := &snap.Providers[i]
		s.Providers = append(s.Providers, metrics.ProviderRow{
			ID: string(p.ID), Node: string(p.Node), Connected: p.Connected, Healthy: p.Health == fsm.Healthy.String(),
			Draining: p.Draining, Capacity: p.Capacity, InFlight: p.InFlight, LongCapacity: p.LongCapacity,
			LongInFlight: p.LongInFlight, Fencing: p.Fencing, Queued: p.Queued, LongQueued: p.LongQueued,
		})
	}
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		row := metrics.NodeRow{ID: string(n.ID), Connected: n.Connected, Generation: uint64(n.Generation)}
		for _, l := range n.Links {
			row.Links = append(row.Links, metrics.LinkRow{Edge: string(l.Edge), State: l.State.String()})
		}
		s.Nodes = append(s.Nodes, row)
	}
	return s
}
