package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what the gauges show: one picture of the machine and the store at one moment.
type State struct {
	QueuePending  int
	QueueMax      int
	QueueLong     int
	QueueDetached int
	Providers     []ProviderRow
	Nodes         []NodeRow
	AppliedIndex  uint64
	Term          uint64
	Revision      uint64
	Leader        bool
	LogBytes      int64 // size of the log on disk
}

// ProviderRow is a provider in numbers. LongCapacity below 0 = long slots are not counted.
type ProviderRow struct {
	ID, Node     string
	Connected    bool
	Healthy      bool
	Draining     bool
	Capacity     int
	InFlight     int
	LongCapacity int
	LongInFlight int
	Fencing      int
	Queued       int
	LongQueued   int
}

// NodeRow is a node and its links.
type NodeRow struct {
	ID         string
	Connected  bool
	Generation uint64
	Links      []LinkRow
}

// LinkRow is a link; State is pending, ready or fenced.
type LinkRow struct{ Edge, State string }

// SetState gives the function that each scrape reads the gauges from; nil = no gauges. It is called from the scraper's
// goroutine, by several at once if there are several scrapers.
func (m *Metrics) SetState(read func() State) { m.state.read.Store(&read) }

// stateCollector makes gauges anew at each scrape, so what is gone leaves none behind.
type stateCollector struct{ read atomic.Pointer[func() State] }

// Describe sends nothing: the collector is unchecked, because its series come and go.
func (c *stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the gauges of one State.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	read := c.read.Load()
	if read == nil || *read == nil {
		return
	}
	s := (*read)()
	g := gauges{ch}
	g.send(nameQueuePending, "Waiters of the whole cluster.", float64(s.QueuePending))
	g.send(nameQueueMax, "Bound of the queue.", float64(s.QueueMax))
	g.send(nameQueueLong, "Waiters of class long.", float64(s.QueueLong))
	g.send(nameQueueDetached, "Waiters whose session has ended.", float64(s.QueueDetached))
	g.send(nameAppliedIndex, "Index of the last applied entry.", float64(s.AppliedIndex))
	g.send(nameTerm, "Term of the last applied entry.", float64(s.Term))
	g.send(nameRevision, "Revision of the configuration.", float64(s.Revision))
	g.send(nameLeader, "1 if this replica leads.", truth(s.Leader))
	g.send(nameLogBytes, "Size of the log on disk.", float64(s.LogBytes))
	for i := range s.Providers {
		g.provider(&s.Providers[i])
	}
	for i := range s.Nodes {
		g.node(&s.Nodes[i])
	}
}

type gauges struct{ ch chan<- prometheus.Metric }

// send makes a gauge; labels are name, value, name, value.
func (g gauges) send(name, help string, v float64, labels ...string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	g.ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, v, values...)
}

func (g gauges) provider(p *ProviderRow) {
	l := []string{labelProvider, p.ID, labelNode, p.Node}
	g.send(nameProviderUp, "1 if the provider's node has a ready link.", truth(p.Connected), l...)
	g.send(nameProviderHealthy, "1 if its node reports it healthy.", truth(p.Healthy), l...)
	g.send(nameProviderDraining, "1 if it takes no new lease.", truth(p.Draining), l...)
	g.send(nameProviderCapacity, "Slots; 0 = offline or unlimited.", float64(p.Capacity), l...)
	g.send(nameProviderInFlight, "Leases held.", float64(p.InFlight), l...)
	if p.LongCapacity >= 0 {
		g.send(nameProviderLongCap, "Long slots.", float64(p.LongCapacity), l...)
		g.send(nameProviderLong, "Long leases held.", float64(p.LongInFlight), l...)
	}
	g.send(nameProviderFencing, "Leases held by fenced links.", float64(p.Fencing), l...)
	g.send(nameProviderQueued, "Waiters that have it as a candidate.", float64(p.Queued), l...)
	g.send(nameProviderLongQ, "Long waiters that have it as a candidate.", float64(p.LongQueued), l...)
}

func (g gauges) node(n *NodeRow) {
	g.send(nameNodeUp, "1 if the node has a ready link.", truth(n.Connected), labelNode, n.ID)
	g.send(nameNodeGeneration, "The node's newest generation.", float64(n.Generation), labelNode, n.ID)
	links := map[LinkRow]int{}
	for _, l := range n.Links {
		links[l]++
	}
	for l, count := range links {
		g.send(nameNodeLinks, "Links of the node by edge and state.", float64(count),
			labelNode, n.ID, labelEdge, l.Edge, labelState, l.State)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
