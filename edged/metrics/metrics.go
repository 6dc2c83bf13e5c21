package metrics

import (
	"net/http"
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

	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	wait      *prometheus.HistogramVec
	tokensIn  *prometheus.CounterVec
	tokensOut *prometheus.CounterVec

	granted  *table[string, prometheus.Counter]
	returned *table[string, prometheus.Counter]
	links    *table[string, prometheus.Counter]

	open           prometheus.Gauge
	requeues       prometheus.Counter
	releaseRetries prometheus.Counter
	commit         prometheus.Histogram
	batch          prometheus.Histogram
	apply          prometheus.Histogram
	gateRefusals   prometheus.Counter
	unknownRuns    prometheus.Counter
	leaderChanges  prometheus.Counter
	snapshot       prometheus.Histogram

	peers peerSet
}

// New returns the metrics of one edge.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), state: &stateCollector{}}
	m.names.Store(&nameSet{})
	m.registry.MustRegister(m.state, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	m.requests = m.counterVec(nameRequests, "Requests by model, provider and how they ended.",
		labelModel, labelProvider, labelOutcome)
	m.duration = m.histogramVec(nameRequestDuration, "Time from a request's arrival to its end.", labelModel)
	m.firstByte = m.histogramVec(nameFirstByte, "Time from a request's arrival to the backend's first byte.", labelModel)
	m.wait = m.histogramVec(nameQueueWait, "Time from admission to the grant of a slot.", labelModel)
	usage := []string{labelPrincipal, labelToken, labelModel, labelProvider}
	m.tokensIn = m.counterVec(nameTokensIn, "Prompt tokens that backends reported.", usage...)
	m.tokensOut = m.counterVec(nameTokensOut, "Completion tokens that backends reported.", usage...)
	m.routes = newTable(m.newRoute)
	m.models = newTable(m.newModel)
	m.usages = newTable(m.newUsage)

	m.granted = m.counters(nameGranted, "Leases granted to this edge's requests.", labelClass)
	m.returned = m.counters(nameReturned, "Leases of this edge's requests that were returned, by reason.", labelReason)
	m.links = m.counters(nameLinkEvents, "Registrations, refusals and ends of links to nodes.", labelEvent)

	m.open = m.gauge(nameOpenRequests, "Requests of clients that have not ended.")
	m.requeues = m.counter(nameRequeues, "Requests that a backend did not run and that went back to their place.")
	m.releaseRetries = m.counter(nameReleaseRetries, "Releases that had to be proposed again.")
	m.gateRefusals = m.counter(nameGateRefusals, "Dispatches that a node's gate refused; should stay 0.")
	m.unknownRuns = m.counter(nameUnknownRuns, "Frames about runs that this edge does not know; dropped.")
	m.leaderChanges = m.counter(nameLeaderChanges, "Changes of the leader as this replica saw them.")
	m.commit = m.histogram(nameCommit, "Time from proposing a batch to its commit on disk.", fineBuckets())
	m.apply = m.histogram(nameApply, "Time the machine took to apply an entry.", prometheus.ExponentialBuckets(1e-6, 4, 10))
	m.batch = m.histogram(nameBatch, "Commands per committed entry.", prometheus.ExponentialBuckets(1, 2, 13))
	m.snapshot = m.histogram(nameSnapshot, "Time to write a snapshot.", prometheus.ExponentialBuckets(1e-3, 4, 9))
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

// Committed counts an entry: how many commands it carried, how long its commit and its Apply took.
func (m *Metrics) Committed(commands int, commit, apply time.Duration) {
	m.batch.Observe(float64(commands))
	m.commit.Observe(commit.Seconds())
	m.apply.Observe(apply.Seconds())
}

// Snapshotted counts a written snapshot.
func (m *Metrics) Snapshotted(d time.Duration) { m.snapshot.Observe(d.Seconds()) }
