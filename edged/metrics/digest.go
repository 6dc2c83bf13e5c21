package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// digestSet tells of comparisons of the replicas' states. Who has made none, and found nothing at himself, shows none: a 0
// of a replica that did not look would say that all is well.
type digestSet struct {
	mismatched *prometheus.GaugeVec
	at         *prometheus.GaugeVec
	checks     *table[string, prometheus.Counter]
}

// The verdicts on a comparison.
const (
	digestSame    = "same"
	digestDiffer  = "differ"
	digestUnknown = "unknown" // somebody did not answer, and those who did are the same
)

func (m *Metrics) newDigestSet() digestSet {
	return digestSet{mismatched: m.gaugeVec(nameMismatch), at: m.gaugeVec(nameDigestTime), checks: m.counters(nameDigestChecks)}
}

// DigestsCompared tells what a comparison of all replicas found: how many differ from the leader and how many did not answer.
func (m *Metrics) DigestsCompared(at time.Time, differ, silent int) {
	verdict := digestSame
	switch {
	case differ > 0:
		verdict = digestDiffer
	case silent > 0:
		verdict = digestUnknown
	}
	(*m.digests.checks.get(verdict)).Inc()
	m.digests.mismatched.WithLabelValues().Set(float64(differ))
	m.digests.at.WithLabelValues().Set(seconds(at))
}

// Diverged tells that this replica's own state is not the leader's.
func (m *Metrics) Diverged() { m.digests.mismatched.WithLabelValues().Set(1) }

// DigestsForgotten takes back what was told: this replica does not lead any more, and another one compares.
func (m *Metrics) DigestsForgotten() {
	m.digests.mismatched.Reset()
	m.digests.at.Reset()
}

// seconds is a moment as Prometheus writes it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
