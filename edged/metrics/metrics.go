package metrics

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is one edge's counters on a registry of its own. All methods can be called from any goroutine; those without
// a comment to the contrary neither lock nor allocate.
type Metrics struct {
	registry *prometheus.Registry
	state    *stateCollector

	names  atomic.Pointer[nameSet]
	routes *table[routeKey, Route]
	models *table[string, Model]
	usages *table[UsageKey, Usage]

	duration  *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	wait      *prometheus.HistogramVec

	granted   *table[string, prometheus.Counter]
	returned  *table[string, prometheus.Counter]
	links     *table[string, prometheus.Counter]
	refreshes *table[string, prometheus.Counter]
	changes   *prometheus.CounterVec

	open           prometheus.Gauge
	requeues       prometheus.Counter
	releaseRetries prometheus.Counter
	commit         prometheus.Histogram
	commitWait     prometheus.Histogram
	sync           prometheus.Histogram
	batch          prometheus.Histogram
	apply          prometheus.Histogram
	gateRefusals   prometheus.Counter
	unknownRuns    prometheus.Counter
	leaderChanges  prometheus.Counter
	leaderless     prometheus.Counter
	reopenings     prometheus.Counter
	clockJumps     prometheus.Counter
	snapshot       prometheus.Histogram

	digests digestSet
	peers   peerSet
	past    past
}

// New returns the metrics of one edge.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), state: newStateCollector()}
	m.names.Store(&nameSet{})
	m.past.Wait, m.past.FirstByte, m.past.Duration = newDistribution(), newDistribution(), newDistribution()
	m.routes = newTable(func(routeKey) *Route { return &Route{} })
	m.models = newTable(m.newModel)
	m.usages = newTable(func(UsageKey) *Usage { return &Usage{} })
	m.registry.MustRegister(m.state, newLabelled(m), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.duration = m.histogramVec(nameRequestDuration, waitBuckets())
	m.firstByte = m.histogramVec(nameFirstByte, waitBuckets())
	m.wait = m.histogramVec(nameQueueWait, waitBuckets())

	m.granted = m.counters(nameGranted)
	m.returned = m.counters(nameReturned)
	m.links = m.counters(nameLinkEvents)
	m.refreshes = m.counters(nameRefreshes)
	m.changes = m.counterVec(nameAdminChanges)

	m.open = m.gauge(nameOpenRequests)
	m.requeues = m.counter(nameRequeues)
	m.releaseRetries = m.counter(nameReleaseRetries)
	m.gateRefusals = m.counter(nameGateRefusals)
	m.unknownRuns = m.counter(nameUnknownRuns)
	m.leaderChanges = m.counter(nameLeaderChanges)
	m.leaderless = m.counter(nameLeaderless)
	m.reopenings = m.counter(nameReopenings)
	m.clockJumps = m.counter(nameClockJumps)
	m.commit = m.histogram(nameCommit, fineBuckets())
	m.commitWait = m.histogram(nameCommitWait, fineBuckets())
	m.sync = m.histogram(nameSync, fineBuckets())
	m.apply = m.histogram(nameApply, prometheus.ExponentialBuckets(1e-6, 4, 10))
	m.batch = m.histogram(nameBatch, prometheus.ExponentialBuckets(1, 2, 13))
	m.snapshot = m.histogram(nameSnapshot, prometheus.ExponentialBuckets(1e-3, 4, 9))
	m.digests = m.newDigestSet()
	m.peers = m.newPeerSet()
	return m
}

// Handler serves the metrics in the format that the scraper asks for. In OpenMetrics histograms have exemplars.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Opened counts a client's request that has begun; Closed one that has ended.
func (m *Metrics) Opened() { m.open.Inc() }

// Closed is the end of what Opened began.
func (m *Metrics) Closed() { m.open.Dec() }

// Granted counts a lease; class is "normal" or "long".
func (m *Metrics) Granted(class string) { (*m.granted.get(class)).Inc() }

// Returned counts a returned lease; reason is the name of an fsm.Reason.
func (m *Metrics) Returned(reason string) { (*m.returned.get(reason)).Inc() }

// LinkEvent counts an event in the life of links to nodes: "registered", "ready", or the name of the reason or refusal
// that ended or refused one. It must be a name of ours, not text of a node.
func (m *Metrics) LinkEvent(event string) { (*m.links.get(event)).Inc() }

// LinkUp counts an accepted registration of a node.
func (m *Metrics) LinkUp(string) { m.LinkEvent("registered") }

// LinkDown counts the end of a link by the name of its reason.
func (m *Metrics) LinkDown(_, reason string) { m.LinkEvent(reason) }

// LinkRefused counts a refused registration by its code.
func (m *Metrics) LinkRefused(code string) { m.LinkEvent("refused_" + code) }

// FrameDropped counts a frame about something that this edge does not know.
func (m *Metrics) FrameDropped(string) { m.unknownRuns.Inc() }

// Requeued counts a request that went back to its place because a backend did not run it.
func (m *Metrics) Requeued() { m.requeues.Inc() }

// ReleaseRetried counts a release that had to be proposed again.
func (m *Metrics) ReleaseRetried() { m.releaseRetries.Inc() }

// GateRefused counts a dispatch that a node's gate refused.
func (m *Metrics) GateRefused() { m.gateRefusals.Inc() }

// LeaderChanged counts a change of the leader.
func (m *Metrics) LeaderChanged() { m.leaderChanges.Inc() }

// Leaderless adds a time for which no leader was known.
func (m *Metrics) Leaderless(d time.Duration) { m.leaderless.Add(max(d, 0).Seconds()) }

// SessionReopened counts a session that was opened because the one before was ended while the edge lives.
func (m *Metrics) SessionReopened() { m.reopenings.Inc() }

// ClockJumped counts a jump of the wall clock.
func (m *Metrics) ClockJumped() { m.clockJumps.Inc() }

// Refreshed counts an attempt to change the configuration by its result, which is a name of ours.
func (m *Metrics) Refreshed(result string) { (*m.refreshes.get(result)).Inc() }

// AdminChanged counts what an operator changed, or was refused to; what is a name of ours. Blanks become underscores. It may
// lock and allocate.
func (m *Metrics) AdminChanged(what string, done bool) {
	result := "refused"
	if done {
		result = "done"
	}
	m.changes.WithLabelValues(strings.ReplaceAll(what, " ", "_"), result).Inc()
}

// Committed counts an entry: how many commands it carried, how long the oldest of them waited, how long its commit and its
// Apply took.
func (m *Metrics) Committed(commands int, wait, commit, apply time.Duration) {
	m.batch.Observe(float64(commands))
	m.commitWait.Observe(wait.Seconds())
	m.commit.Observe(commit.Seconds())
	m.apply.Observe(apply.Seconds())
}

// Snapshotted counts a written snapshot.
func (m *Metrics) Snapshotted(d time.Duration) { m.snapshot.Observe(d.Seconds()) }

// Synced counts a write of entries to the log, with its fsync.
func (m *Metrics) Synced(d time.Duration) { m.sync.Observe(d.Seconds()) }
