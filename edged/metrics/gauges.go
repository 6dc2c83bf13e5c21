package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges sends the numbers of a State.
type gauges struct {
	ch    chan<- prometheus.Metric
	descs map[string]*prometheus.Desc
}

// send makes a gauge; labels are the values of those that the catalog has for it.
func (g gauges) send(name string, v float64, labels ...string) {
	g.ch <- prometheus.MustNewConstMetric(g.descs[name], prometheus.GaugeValue, v, labels...)
}

// count makes a counter.
func (g gauges) count(name string, v uint64) {
	g.ch <- prometheus.MustNewConstMetric(g.descs[name], prometheus.CounterValue, float64(v))
}

// moment makes a gauge of a time, if there is one.
func (g gauges) moment(name string, t time.Time) {
	if !t.IsZero() {
		g.send(name, seconds(t))
	}
}

// known makes a gauge of a number, if it is known.
func (g gauges) known(name string, n int64) {
	if n >= 0 {
		g.send(name, float64(n))
	}
}

func (g gauges) all(s *State) {
	g.queue(&s.Queue)
	g.leases(&s.Leases)
	g.responses(&s.Responses)
	g.log(&s.Log)
	g.cluster(&s.Cluster)
	g.edge(&s.Edge)
	for i := range s.Models {
		g.send(nameModelAvailable, truth(s.Models[i].Available), s.Models[i].ID)
		g.send(nameModelQueued, float64(s.Models[i].Queued), s.Models[i].ID)
	}
	for i := range s.Providers {
		g.provider(&s.Providers[i])
	}
	for i := range s.Nodes {
		g.node(&s.Nodes[i])
	}
}

func (g gauges) queue(q *QueueState) {
	g.send(nameQueuePending, float64(q.Pending))
	g.send(nameQueueMax, float64(q.Max))
	g.send(nameQueueLong, float64(q.Long))
	g.send(nameQueueDetached, float64(q.Detached))
	g.send(nameQueueOldest, q.Oldest.Seconds())
}

func (g gauges) leases(l *LeaseState) {
	g.send(nameLeases, float64(l.Held))
	g.send(nameFencing, float64(l.Fencing))
	g.send(nameLeasesOver, float64(l.OverCapacity))
}

func (g gauges) responses(r *ResponseState) {
	g.send(nameResponses, float64(r.Stored))
	g.send(nameBackground, float64(r.Background))
	g.send(nameResponsesBytes, float64(r.Bytes))
	g.send(nameResponsesMax, float64(r.BytesMax))
}

func (g gauges) log(l *LogState) {
	g.send(nameLogBytes, float64(l.Bytes))
	g.send(nameLogFirst, float64(l.First))
	g.send(nameLogLast, float64(l.Last))
	g.send(nameAppliedIndex, float64(l.Applied))
	g.send(nameTerm, float64(l.Term))
	g.send(nameLag, float64(l.Lag))
	g.count(nameLogEntries, l.Entries)
	g.count(nameLogWritten, l.Written)
	g.send(nameQueuedBytes, float64(l.QueuedBytes))
	g.count(nameOverloaded, l.Overloaded)
	g.count(nameWatchMissed, l.WatchMissed)
	g.send(nameSnapshotIndex, float64(l.SnapshotIndex))
	g.send(nameSnapshotBytes, float64(l.SnapshotBytes))
	g.moment(nameSnapshotTime, l.SnapshotAt)
	g.send(nameStorageFailed, truth(l.Failed))
	g.known(nameDiskFree, l.DiskFree)
	g.known(nameDiskSize, l.DiskSize)
}

func (g gauges) cluster(c *ClusterState) {
	g.send(nameLeader, truth(c.Leader))
	g.send(nameHasLeader, truth(c.HasLeader))
	g.send(nameMembers, float64(c.Members))
	g.send(nameVoters, float64(c.Voters))
	g.send(nameSessions, float64(c.SessionsOpen), "open")
	g.send(nameSessions, float64(c.SessionsGrace), "grace")
}

func (g gauges) edge(e *EdgeState) {
	g.send(nameReady, truth(e.Ready))
	g.send(nameRevision, float64(e.Revision))
	g.moment(nameConfigTime, e.ConfigAt)
	g.send(nameBuild, 1, e.Version, e.Go)
	g.moment(nameWall, e.Now)
	g.count(nameSpansExported, e.SpansExported)
	g.count(nameSpansLost, e.SpansLost)
	for _, c := range e.Certificates {
		g.send(nameCertificate, c.Left.Seconds(), c.What)
	}
}

func (g gauges) provider(p *ProviderRow) {
	l := []string{p.ID, p.Node}
	g.send(nameProviderUp, truth(p.Connected), l...)
	g.send(nameProviderHealthy, truth(p.Healthy), l...)
	g.send(nameProviderEnabled, truth(p.Enabled), l...)
	g.send(nameProviderDraining, truth(p.Draining), l...)
	g.send(nameProviderCapacity, float64(p.Capacity), l...)
	g.send(nameProviderInFlight, float64(p.InFlight), l...)
	if p.LongCapacity >= 0 {
		g.send(nameProviderLongCap, float64(p.LongCapacity), l...)
		g.send(nameProviderLong, float64(p.LongInFlight), l...)
	}
	g.send(nameProviderFencing, float64(p.Fencing), l...)
	g.send(nameProviderQueued, float64(p.Queued), l...)
	g.send(nameProviderLongQ, float64(p.LongQueued), l...)
}

func (g gauges) node(n *NodeRow) {
	g.send(nameNodeUp, truth(n.Connected), n.ID)
	g.send(nameNodeGeneration, float64(n.Generation), n.ID)
	links := map[LinkRow]int{}
	for _, l := range n.Links {
		links[l]++
	}
	for l, count := range links {
		g.send(nameNodeLinks, float64(count), n.ID, l.Edge, l.State)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
