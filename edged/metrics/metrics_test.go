package metrics_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/metrics"
)

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, l+"\n") {
			t.Errorf("no line %q", l)
		}
	}
}

// Fault: label values from the client, so that a scanner of model names fills the memory of Prometheus.
func TestClientChosenNamesAreNoLabels(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a"}, []string{"p"})
	m.Route("a", "p").Ended(metrics.OutcomeOK)
	m.Route("evil-1", "").Ended(metrics.OutcomeModelNotFound)
	m.Route("evil-2", "evil-p").Ended(metrics.OutcomeModelNotFound)
	m.Model("evil-1").Duration(time.Second, "")
	m.Usage(metrics.UsageKey{Principal: "team", Token: "app", Model: "a", Provider: "p"}).Add(3, 0)
	text := scrape(t, m)
	wants(t, text,
		`iop_requests_total{model="a",outcome="ok",provider="p"} 1`,
		`iop_requests_total{model="unknown",outcome="model_not_found",provider="none"} 2`,
		`iop_tokens_in_total{model="a",principal_ref="team",provider="p",token_ref="app"} 3`,
		`iop_tokens_out_total{model="a",principal_ref="team",provider="p",token_ref="app"} 0`)
	if strings.Contains(text, "evil") {
		t.Error("a client's text became a label")
	}
}

// Fault: a removed backend's series stay in the metrics; a reload with the same content forgets counts.
func TestRemovedNamesVanishAndOthersKeepTheirCounts(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a", "b"}, []string{"p", "q"})
	for _, model := range []string{"a", "b"} {
		m.Route(model, "p").Ended(metrics.OutcomeOK)
		m.Model(model).Wait(time.Millisecond, "")
		m.Usage(metrics.UsageKey{Model: model, Provider: "q"}).Add(1, 1)
	}
	m.SetNames([]string{"a", "b"}, []string{"p", "q"})
	m.SetNames([]string{"a"}, []string{"p"})
	m.Route("a", "p").Ended(metrics.OutcomeOK)
	state := metrics.State{
		Queue:     metrics.QueueState{Pending: 3, Max: 16},
		Providers: []metrics.ProviderRow{{ID: "p", Node: "n", Capacity: 4, InFlight: 2, LongCapacity: -1}},
		Nodes:     []metrics.NodeRow{{ID: "n", Generation: 7, Links: []metrics.LinkRow{{"e", "ready"}, {"e", "fenced"}, {"e", "fenced"}}}},
	}
	m.SetState(func() metrics.State { return state })
	text := scrape(t, m)
	wants(t, text,
		`iop_requests_total{model="a",outcome="ok",provider="p"} 2`, `iop_queue_wait_seconds_count{model="a"} 1`,
		`iop_queue_pending 3`, `iop_provider_in_flight{node="n",provider="p"} 2`,
		`iop_node_links{edge="e",node="n",state="fenced"} 2`, `iop_node_generation{node="n"} 7`)
	for _, gone := range []string{`model="b"`, `provider="q"`, "iop_provider_long_capacity"} {
		if strings.Contains(text, gone) {
			t.Errorf("%s is still shown", gone)
		}
	}
	state = metrics.State{}
	if strings.Contains(scrape(t, m), "iop_provider") {
		t.Error("a gone provider still has gauges")
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	m := metrics.New()
	m.SetNames([]string{"a"}, []string{"p"})
	k := metrics.UsageKey{Principal: "t", Token: "x", Model: "a", Provider: "p"}
	n := testing.AllocsPerRun(100, func() {
		m.Opened()
		m.Route("a", "p").Ended(metrics.OutcomeOK)
		m.Model("a").Wait(1, "")
		m.Model("a").FirstByte(1, "")
		m.Model("a").Duration(1, "")
		m.Usage(k).Add(1, 2)
		m.Granted("normal")
		m.Returned("done")
		m.Committed(1, 1, 1, 1)
		m.Synced(1)
		m.Usage(k).Untold()
		m.Closed()
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := metrics.New()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				if i == 0 {
					m.SetNames([]string{"a"}, nil)
				}
				m.Route("a", "").Ended(metrics.OutcomeOK)
				m.Returned("done")
				m.LinkEvent("ready")
			}
		})
	}
	wg.Wait()
	wants(t, scrape(t, m), `iop_leases_returned_total{reason="done"} 1600`)
}
