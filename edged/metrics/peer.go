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
	s := peerSet{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: namePeerUp, Help: "1 if the replica answers this one."}, []string{labelPeer}),
		roundTrip: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: namePeerRoundTrip, Help: "Time of a ping to the replica.", Buckets: fineBuckets(),
		}, []string{labelPeer}),
		forwarded: m.counterVec(namePeerForwarded, "Batches of commands sent to the replica as the leader, by what it said.", labelPeer, labelVerdict),
	}
	m.registry.MustRegister(s.up, s.roundTrip)
	return s
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
