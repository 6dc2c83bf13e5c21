package noded

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

func checked(path string) func(*nodepb.AdapterConfig, *nodepb.ProviderConfig) {
	return func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) {
		p.HealthCheck = &nodepb.HealthCheck{Path: path, IntervalMs: 1}
	}
}

func TestRefusedConnectionsDegradeAProviderUntilItAnswers(t *testing.T) {
	n, at := newNode(t), address(t)
	n.configure(1, one("p", "vllm", "http://"+at, nil))
	for range 3 {
		_, end := n.run("p")
		wantEnd(t, end, edgelink.DispatchedNo, "connect_failed")
	}
	if c := n.wantReported("p", true); !strings.Contains(c.cause, "refused") {
		t.Errorf("the cause is %q", c.cause)
	}
	for range 5 { // it is reported once
		n.run("p")
	}
	listenAt(t, at)
	n.wantReported("p", false)
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedYes, "")
	if len(n.reported) != 0 {
		t.Errorf("reported without a change: %+v", <-n.reported)
	}
}

func TestAnswersBetweenRefusalsKeepAProviderHealthy(t *testing.T) {
	n, at := newNode(t), address(t)
	n.configure(1, one("p", "vllm", "http://"+at, nil))
	for range 3 {
		n.run("p")
		n.run("p")
		s := listenAt(t, at)
		_, end := n.run("p")
		wantEnd(t, end, edgelink.DispatchedYes, "")
		s.Close()
	}
	if len(n.reported) != 0 {
		t.Errorf("reported %+v", <-n.reported)
	}
}

func TestAHealthCheckTellsOfChangesOnly(t *testing.T) {
	var sick atomic.Bool
	var asked atomic.Int64
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method != "GET" || r.URL.Path != "/health" || sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	n := newNode(t)
	n.configure(1, one("p", "llamacpp", base+"/v1", checked("/health")))
	untilAsked := func(more int64) {
		for from := asked.Load(); asked.Load() < from+more; {
			n.runNothing()
		}
	}
	untilAsked(5)
	sick.Store(true)
	if c := n.wantReported("p", true); !strings.Contains(c.cause, "503") {
		t.Errorf("the cause is %q", c.cause)
	}
	untilAsked(5)
	sick.Store(false)
	n.wantReported("p", false)
	untilAsked(5)
	if len(n.reported) != 0 {
		t.Errorf("reported without a change: %+v", <-n.reported)
	}
}

// runNothing passes a moment.
func (n *node) runNothing() { _, _ = n.run("nobody") }

func TestAProviderThatIsNotThereAtTheStartIsDegradedAtOnce(t *testing.T) {
	n, at := newNode(t), address(t)
	n.configure(1, one("p", "vllm", "http://"+at, checked("/health")))
	n.wantReported("p", true)
	listenAt(t, at)
	n.wantReported("p", false)
}

func TestABackendThatHangsHoldsUpNoOther(t *testing.T) {
	hang := make(chan struct{})
	hanging := backendWith(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	good := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	n, gone := newNode(t), address(t)
	n.configure(1, join(one("hung", "vllm", hanging, checked("/health")), one("good", "vllm", good, checked("/health")), one("gone", "vllm", "http://"+gone, checked("/health"))))
	n.wantReported("gone", true) // while the other's check hangs
	for range 50 {
		_, end := n.run("good")
		wantEnd(t, end, edgelink.DispatchedYes, "")
	}
}

func TestANewConfigurationBeginsWithoutPrejudice(t *testing.T) {
	n, at := newNode(t), address(t)
	n.configure(1, one("p", "vllm", "http://"+at, checked("/health")))
	n.wantReported("p", true)
	good := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	n.configure(2, one("p", "vllm", good, checked("/health")))
	n.wantReported("p", false)
	n.configure(3, &nodepb.NodeConfigPayload{})
	if len(n.reported) != 0 {
		t.Errorf("reported without a change: %+v", <-n.reported)
	}
}
