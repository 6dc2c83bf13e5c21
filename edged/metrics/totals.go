package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are the sums over all labels since the edge's start. They never become less, also when the configuration drops
// names whose series vanish.
type Totals struct {
	Requests  uint64 // of clients, that have ended
	Errors    uint64 // of them, those that were not served and whose client was not to blame (Outcome.Failed)
	Granted   uint64 // leases, of this edge's requests
	Returned  uint64
	TokensIn  uint64
	TokensOut uint64

	Wait      Distribution // from admission to the grant
	FirstByte Distribution // from arrival to the backend's first byte
	Duration  Distribution // from arrival to the end
}

// Distribution counts observations by size. Counts has one more than Bounds: Counts[i] are those up to Bounds[i] seconds
// and above the bound before, the last are those above all bounds. Bounds are shared and not to be changed.
type Distribution struct {
	Bounds []float64
	Counts []uint64
}

// Failed tells whether a request with this outcome was not served though its client did nothing wrong.
func (o Outcome) Failed() bool {
	switch o {
	case OutcomeBackendError, OutcomeQueueFull, OutcomePrincipalLimit, OutcomeQueueTimeout, OutcomeUnavailable, OutcomeOverloaded,
		OutcomeNoLeader, OutcomeStopping, OutcomeInternal:
		return true
	}
	return false
}

// Totals sums up what was counted. It reads counters and adds nothing to the way of a request; it costs a few microseconds
// per model in use, and it allocates.
func (m *Metrics) Totals() Totals {
	m.past.mu.Lock()
	defer m.past.mu.Unlock()
	t := m.past.Totals
	t.Wait, t.FirstByte, t.Duration = t.Wait.clone(), t.FirstByte.clone(), t.Duration.clone()
	m.routes.each(func(_ routeKey, r *Route) { t.addRoute(r) })
	m.usages.each(func(_ UsageKey, u *Usage) { t.addUsage(u) })
	m.models.each(func(_ string, x *Model) { t.addModel(x) })
	m.granted.each(func(_ string, c *prometheus.Counter) { t.Granted += read(*c) })
	m.returned.each(func(_ string, c *prometheus.Counter) { t.Returned += read(*c) })
	return t
}

// past is what the dropped names had counted.
type past struct {
	mu sync.Mutex // also held while names are dropped, so that nothing is counted twice
	Totals
}

func newDistribution() Distribution {
	b := waitBuckets()
	return Distribution{Bounds: b, Counts: make([]uint64, len(b)+1)}
}

func (d Distribution) clone() Distribution {
	d.Counts = slices.Clone(d.Counts)
	return d
}

func (t *Totals) addRoute(r *Route) {
	for o := range outcomes {
		n := r.ended[o].Load()
		t.Requests += n
		if o.Failed() {
			t.Errors += n
		}
	}
}

func (t *Totals) addUsage(u *Usage) {
	t.TokensIn += u.in.Load()
	t.TokensOut += u.out.Load()
}

func (t *Totals) addModel(x *Model) {
	t.Wait.add(x.wait)
	t.FirstByte.add(x.firstByte)
	t.Duration.add(x.duration)
}

// add takes over what a histogram with the same bounds has.
func (d *Distribution) add(o prometheus.Observer) {
	h, ok := o.(prometheus.Metric)
	if !ok {
		return
	}
	var v dto.Metric
	if h.Write(&v) != nil {
		return
	}
	below := uint64(0)
	for i, b := range v.GetHistogram().GetBucket() {
		if i < len(d.Bounds) {
			d.Counts[i] += b.GetCumulativeCount() - below
			below = b.GetCumulativeCount()
		}
	}
	d.Counts[len(d.Bounds)] += v.GetHistogram().GetSampleCount() - below
}

func read(c prometheus.Counter) uint64 {
	var v dto.Metric
	if c.Write(&v) != nil {
		return 0
	}
	return uint64(v.GetCounter().GetValue())
}
