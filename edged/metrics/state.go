package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what the gauges show: one picture of the machine and the store at one moment.
type State struct {
	Queue     QueueState
	Leases    LeaseState
	Responses ResponseState
	Log       LogState
	Cluster   ClusterState
	Edge      EdgeState

	Models    []ModelRow
	Providers []ProviderRow
	Nodes     []NodeRow
}

// QueueState is the queue in numbers.
type QueueState struct {
	Pending, Max, Long, Detached int
	Oldest                       time.Duration // how long the first has waited
}

// LeaseState is the leases in numbers, those of nodes that are offline too.
type LeaseState struct{ Held, Fencing, OverCapacity int }

// ResponseState is what is stored for clients.
type ResponseState struct {
	Stored, Background int
	Bytes, BytesMax    int64
}

// LogState is the log of this replica. Disk numbers below 0 are not known.
type LogState struct {
	Bytes              int64 // on disk
	First, Last        uint64
	Applied, Term      uint64
	Lag                uint64
	Entries, Written   uint64 // proposed and committed since the start, and their bytes
	QueuedBytes        int64
	Overloaded         uint64
	WatchMissed        uint64
	SnapshotIndex      uint64
	SnapshotBytes      int64
	SnapshotAt         time.Time // zero = there is none
	Failed             bool
	DiskFree, DiskSize int64
}

// ClusterState is what this replica knows of the others.
type ClusterState struct {
	Leader          bool // this one leads
	HasLeader       bool
	Members, Voters int
	SessionsOpen    int
	SessionsGrace   int
}

// EdgeState is what is known of this process and its configuration.
type EdgeState struct {
	Ready        bool
	Revision     uint64
	ConfigAt     time.Time // when it came into effect; zero = not known
	Version, Go  string
	Now          time.Time // wall clock
	Certificates []CertificateRow
	// SpansExported and SpansLost count spans of traces since the start.
	SpansExported, SpansLost uint64
}

// CertificateRow is a file with certificates; What is a name of ours.
type CertificateRow struct {
	What string
	Left time.Duration // until the first of them ends
}

// ModelRow is a model in numbers.
type ModelRow struct {
	ID        string
	Available bool
	Queued    int
}

// ProviderRow is a provider in numbers. LongCapacity below 0 = long slots are not counted.
type ProviderRow struct {
	ID, Node     string
	Connected    bool
	Healthy      bool
	Enabled      bool
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
type stateCollector struct {
	read  atomic.Pointer[func() State]
	descs map[string]*prometheus.Desc // by name; never changed
}

func newStateCollector() *stateCollector {
	c := &stateCollector{descs: map[string]*prometheus.Desc{}}
	for _, d := range Catalog() {
		c.descs[d.Name] = newDesc(d)
	}
	return c
}

// Describe sends nothing: the collector is unchecked, because its series come and go.
func (c *stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the gauges of one State.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	read := c.read.Load()
	if read == nil || *read == nil {
		return
	}
	s := (*read)()
	g := gauges{ch: ch, descs: c.descs}
	g.all(&s)
}
