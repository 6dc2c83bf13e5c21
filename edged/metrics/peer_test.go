package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPeersComeAndGo(t *testing.T) {
	m := New()
	m.PeerUp("edge-2", true)
	m.PeerUp("edge-3", false)
	m.PeerRoundTrip("edge-2", time.Millisecond)
	m.PeerForwarded("edge-2", "accepted")
	shown := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	for _, want := range []string{
		`iop_peer_up{peer="edge-2"} 1`, `iop_peer_up{peer="edge-3"} 0`, `iop_peer_round_trip_seconds_count{peer="edge-2"} 1`,
		`iop_peer_forwarded_batches_total{peer="edge-2",verdict="accepted"} 1`,
	} {
		if !strings.Contains(shown(), want) {
			t.Errorf("no %s", want)
		}
	}
	m.PeerGone("edge-2")
	if text := shown(); strings.Contains(text, "edge-2") || !strings.Contains(text, "edge-3") {
		t.Error("a replica that is gone is still shown, or another is not")
	}
}
