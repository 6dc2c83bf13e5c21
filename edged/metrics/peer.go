package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// peerSet counts what happens between this replica and the others. A peer is a member of the cluster or of the
// configuration, so there are few.
type peerSet struct {
	up        *prometheus.GaugeVec
	roundTrip *prometheus.HistogramVec
	forwarded *prometheus.CounterVec
}

func (m *Metrics) newPeerSet() peerSet {
	return peerSet{
		up: m.gaugeVec(namePeerUp), roundTrip: m.histogramVec(namePeerRoundTrip, fineBuckets()),
		forwarded: m.counterVec(namePeerForwarded),
	}
}

// PeerUp tells whether another replica answers. It may lock and allocate, as all of the Peer methods.
func (m *Metrics) PeerUp(peer string, up bool) { m.peers.up.WithLabelValues(peer).Set(truth(up)) }

// PeerRoundTrip is the time of an answered ping.
func (m *Metrics) PeerRoundTrip(peer string, d time.Duration) {
	m.peers.roundTrip.WithLabelValues(peer).Observe(d.Seconds())
}

// PeerForwarded counts batches that a replica, taken for the leader, gave a verdict on.
func (m *Metrics) PeerForwarded(peer, verdict string) {
	m.peers.forwarded.WithLabelValues(peer, verdict).Inc()
}

// PeerGone forgets a replica.
func (m *Metrics) PeerGone(peer string) {
	gone := prometheus.Labels{labelPeer: peer}
	m.peers.up.DeletePartialMatch(gone)
	m.peers.roundTrip.DeletePartialMatch(gone)
	m.peers.forwarded.DeletePartialMatch(gone)
}
