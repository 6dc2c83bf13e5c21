package edged

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"runtime"
	"time"

	"iop/edged/metrics"
	"iop/fsm"
	"iop/storage"
)

// state is what the gauges show at a scrape.
func (d *Daemon) state() metrics.State {
	var snap fsm.Snapshot
	var f fsm.Figures
	d.store.View(func(m *fsm.Machine) { snap, f = m.Snapshot(), m.Figures() })
	now := time.Now()
	s := metrics.State{
		Queue: metrics.QueueState{
			Pending: snap.Queue.Pending, Max: snap.Queue.Max, Long: snap.Queue.LongPending, Detached: snap.Queue.Detached,
		},
		Leases: metrics.LeaseState{Held: f.Leases, Fencing: f.Fencing, OverCapacity: f.OverCapacity},
		Responses: metrics.ResponseState{
			Stored: f.Stored, Background: f.Background, Bytes: f.Bytes, BytesMax: f.BytesMax,
		},
		Log: d.logState(&snap), Cluster: d.clusterState(&snap), Edge: d.edgeState(&snap, now),
		Models: modelRows(&snap), Providers: providerRows(&snap), Nodes: nodeRows(&snap),
	}
	if f.Waiter != 0 {
		s.Queue.Oldest = max(now.Sub(time.Unix(0, f.WaiterSince)), 0)
	}
	return s
}

func (d *Daemon) logState(snap *fsm.Snapshot) metrics.LogState {
	st := d.store.Stats()
	l := metrics.LogState{
		Bytes: st.LogFileBytes, First: st.FirstIndex, Last: st.LastIndex, Applied: snap.Index, Term: snap.Term,
		Lag: d.store.Standing().Behind, Entries: st.Entries, Written: st.Bytes, QueuedBytes: st.QueuedBytes, Overloaded: st.Overloaded,
		WatchMissed: st.Missed, SnapshotIndex: st.SnapshotIndex, SnapshotBytes: st.SnapshotBytes, SnapshotAt: st.SnapshotAt,
		Failed: d.store.Err() != nil, DiskFree: -1, DiskSize: -1,
	}
	if x, ok := d.store.Space(); ok {
		l.DiskFree, l.DiskSize = x.Free, x.Size
	}
	if errors.Is(d.store.Err(), storage.ErrDiverged) {
		d.metrics.Diverged()
	}
	return l
}

func (d *Daemon) clusterState(snap *fsm.Snapshot) metrics.ClusterState {
	c := metrics.ClusterState{Leader: d.store.Role() == storage.RoleLeader, HasLeader: d.leader() != ""}
	for _, m := range d.store.Members() {
		c.Members++
		if m.Voter {
			c.Voters++
		}
	}
	for _, x := range snap.Sessions {
		if x.InGrace {
			c.SessionsGrace++
		} else {
			c.SessionsOpen++
		}
	}
	return c
}

func (d *Daemon) edgeState(snap *fsm.Snapshot, now time.Time) metrics.EdgeState {
	e := metrics.EdgeState{
		Ready: d.notReady() == nil, Revision: uint64(snap.Revision), Version: d.o.Version, Go: runtime.Version(), Now: now,
	}
	n := d.tracer.Counts()
	e.SpansExported, e.SpansLost = n.Exported, n.Dropped+n.Failed
	e.ConfigAt = d.fresh.past.since()
	for _, f := range []struct{ what, path string }{
		{"edge", d.self.TLS.Cert}, {"client_ca", d.self.TLS.ClientCA}, {"cluster_ca", d.self.Cluster.CA},
	} {
		if ends, ok := certificateEnds(f.path); ok {
			e.Certificates = append(e.Certificates, metrics.CertificateRow{What: f.what, Left: ends.Sub(now)})
		}
	}
	return e
}

// certificateEnds tells when the first certificate in a file ends. The file is read at each scrape, as it is at each
// handshake: it may have been renewed.
func certificateEnds(path string) (ends time.Time, found bool) {
	if path == "" {
		return ends, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ends, false
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue // a key, or what is no certificate
		}
		if !found || c.NotAfter.Before(ends) {
			ends, found = c.NotAfter, true
		}
	}
	return ends, found
}

func modelRows(snap *fsm.Snapshot) (rows []metrics.ModelRow) {
	for i := range snap.Models {
		m := &snap.Models[i]
		rows = append(rows, metrics.ModelRow{ID: string(m.ID), Available: m.Available, Queued: m.Queued})
	}
	return rows
}

func providerRows(snap *fsm.Snapshot) (rows []metrics.ProviderRow) {
	for i := range snap.Providers {
		p := &snap.Providers[i]
		rows = append(rows, metrics.ProviderRow{
			ID: string(p.ID), Node: string(p.Node), Connected: p.Connected, Healthy: p.Health == fsm.Healthy.String(), Enabled: p.Enabled,
			Draining: p.Draining, Capacity: p.Capacity, InFlight: p.InFlight, LongCapacity: p.LongCapacity,
			LongInFlight: p.LongInFlight, Fencing: p.Fencing, Queued: p.Queued, LongQueued: p.LongQueued,
		})
	}
	return rows
}

func nodeRows(snap *fsm.Snapshot) (rows []metrics.NodeRow) {
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		row := metrics.NodeRow{ID: string(n.ID), Connected: n.Connected, Generation: uint64(n.Generation)}
		for _, l := range n.Links {
			row.Links = append(row.Links, metrics.LinkRow{Edge: string(l.Edge), State: l.State.String()})
		}
		rows = append(rows, row)
	}
	return rows
}
