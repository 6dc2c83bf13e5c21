package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"iop/edged/metrics"
)

// openMetrics scrapes as a Prometheus does that stores exemplars.
func openMetrics(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	m.Handler().ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || !strings.HasPrefix(got, "application/openmetrics-text") {
		t.Fatalf("scrape: %d %s", w.Code, got)
	}
	return w.Body.String()
}

func TestTracesAreExemplars(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a"}, nil)
	ids := []string{strings.Repeat("1a", 16), strings.Repeat("2b", 16), strings.Repeat("3c", 16)}
	a := m.Model("a")
	a.Wait(time.Millisecond, ids[0])
	a.FirstByte(time.Second, ids[1])
	a.Duration(time.Minute, ids[2])
	text := openMetrics(t, m)
	for i, name := range []string{"iop_queue_wait_seconds", "iop_first_byte_seconds", "iop_request_duration_seconds"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, name+"_bucket") && strings.Contains(line, `# {trace_id="`+ids[i]+`"}`)
		}
		if !found {
			t.Errorf("%s has no exemplar %s", name, ids[i])
		}
	}
	if strings.Contains(scrape(t, m), ids[0]) {
		t.Error("an exemplar in the old format, which has none")
	}
}

// Fault: what a client sent as a trace id makes the observation of its request panic, or becomes text in the metrics.
func TestWhatIsNoTraceIDIsNoExemplar(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a"}, nil)
	bad := []string{"x", strings.Repeat("\xff", 32), strings.Repeat("A", 32), strings.Repeat("a", 200), strings.Repeat("g", 32)}
	for _, id := range bad {
		m.Model("a").Wait(time.Millisecond, id)
	}
	text := openMetrics(t, m)
	if strings.Contains(text, "trace_id") {
		t.Error("an exemplar")
	}
	wants(t, text, `iop_queue_wait_seconds_count{model="a"} 5`)
}
