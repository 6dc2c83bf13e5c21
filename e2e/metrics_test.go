package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"iop/cli"
	"iop/e2e/backend"
	"iop/edged/metrics"
)

// series are the names and labels of ours that an edge exports now.
func (w *world) series() map[string]bool {
	w.t.Helper()
	out := map[string]bool{}
	for line := range strings.Lines(string(fetch(w.t, w.edge.admin, "/metrics"))) {
		if strings.HasPrefix(line, "iop_") {
			out[line[:strings.LastIndexByte(line, ' ')]] = true
		}
	}
	return out
}

// notOfOneEdge are metrics that a single young edge does not export, with the reason.
func notOfOneEdge() map[string]string {
	return map[string]string{
		"iop_peer_up":                        "there is no other replica",
		"iop_peer_round_trip_seconds":        "there is no other replica",
		"iop_peer_forwarded_batches_total":   "there is no other replica",
		"iop_digest_mismatched_replicas":     "nobody is compared",
		"iop_digest_checks_total":            "nobody is compared",
		"iop_digest_check_timestamp_seconds": "nobody is compared",
		"iop_certificate_expiry_seconds":     "there is no TLS",
		"iop_snapshot_timestamp_seconds":     "no snapshot is written yet",
	}
}

// TestMetricsOfARealEdge: what a real edge exports after a little of everything is the catalog, less what only clusters have.
func TestMetricsOfARealEdge(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 7, Usage: true}})
	l := shared(b, 2)
	l.providers[0].long, l.providers[0].window = 1, 100_000
	w := newWorld(t, l)
	w.want(200, ask{})
	w.apply(func(l *layout) { l.queue = 32 })
	w.awaitIdle()
	shown := string(fetch(t, w.edge.admin, "/metrics"))
	for _, d := range metrics.Catalog() {
		if why := notOfOneEdge()[d.Name]; why != "" {
			continue
		}
		if !strings.Contains(shown, fmt.Sprintf("# TYPE %s %s\n", d.Name, d.Type)) {
			t.Errorf("%s %s is not exported by an edge", d.Name, d.Type)
		}
	}
	for _, fact := range []struct {
		name  string
		parts []string
		want  float64
	}{
		{"iop_ready", nil, 1},
		{"iop_has_leader", nil, 1},
		{"iop_storage_failed", nil, 0},
		{"iop_cluster_voters", nil, 1},
		{"iop_queue_max", nil, 32},
		{"iop_config_refreshes_total", []string{`result="applied"`}, 1},
		{"iop_admin_changes_total", []string{`change="refresh"`, `result="done"`}, 1},
		{"iop_leases", nil, 0},
		{"iop_model_available", []string{`"m"`}, 1},
		{"iop_sessions", nil, 1},
		{"iop_provider_enabled", nil, 1},
	} {
		if got := w.metric(fact.name, fact.parts...); got != fact.want {
			t.Errorf("%s %v = %v, want %v", fact.name, fact.parts, got, fact.want)
		}
	}
	for _, some := range []string{"iop_log_sync_seconds_count", "iop_data_dir_free_bytes", "iop_log_entries_total", "iop_config_changed_timestamp_seconds", "iop_wall_time_seconds"} {
		if w.metric(some) <= 0 {
			t.Errorf("%s is not above 0", some)
		}
	}
}

// TestHostileClientsAddNoSeries: whatever clients choose (models, ids, users, routes, methods, headers, tokens), at the public
// and at the admin listener, becomes no series. Fault: a scanner fills the memory of Prometheus.
func TestHostileClientsAddNoSeries(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 7, Usage: true}})
	l := shared(b, 4)
	l.tokens = map[string]string{"app": "key"}
	w := newWorld(t, l)
	d := dice(t)
	text := func() string { return fmt.Sprintf("evil-%x", d.Uint64()) }
	attack := func() {
		h := http.Header{
			"X-Request-Id": {text()}, "Openai-Organization": {text()}, "User-Agent": {text()}, "Traceparent": {text()}, "Tracestate": {text() + "=1"},
			"X-Iop-Operator": {text()}, "Forwarded": {"for=" + text()},
		}
		for _, a := range []ask{
			{model: text(), token: "key"},
			{tag: text(), token: "key", key: text(), header: h},
			{token: text()},
			{path: "/v1/" + text(), token: "key"},
			{path: "/v1/responses", model: text(), token: "key"},
			{body: []byte("{" + text()), token: "key"},
			{path: "/v1/messages", model: text(), token: "key"},
			{model: "provider:" + text(), token: "key"},
		} {
			w.ask(a)
		}
		for _, path := range []string{"/queue/" + text() + "/cancel", "/" + text(), "/cluster/members", "/drain", "/refresh?dry_run=" + text()} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.edge.admin+path, strings.NewReader(`{"node":"`+text()+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = h
			if res, err := newClient().Do(r); err == nil {
				_ = res.Body.Close()
			}
		}
	}
	attack()
	w.awaitIdle()
	before := w.series()
	for range rounds(8, 200) {
		attack()
	}
	w.awaitIdle()
	after := w.series()
	for _, s := range slices.Sorted(maps.Keys(after)) {
		if !before[s] {
			t.Errorf("a new series: %s", s)
		}
		if strings.Contains(s, "evil") {
			t.Errorf("a client's text is a label: %s", s)
		}
	}
	if w.metric("iop_requests_total", `model="m"`, `outcome="ok"`) < 9 {
		t.Error("the attack did not reach the models")
	}
}

// TestDroppedNamesTakeTheirSeries: what the configuration drops is gone at the next scrape.
func TestDroppedNamesTakeTheirSeries(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 2))
	w.want(200, ask{model: "ornith-fast"})
	w.awaitIdle()
	shows := func() bool {
		for s := range w.series() {
			if strings.Contains(s, `"ornith-fast"`) {
				return true
			}
		}
		return false
	}
	if !shows() {
		t.Fatal("the model has no series")
	}
	w.apply(func(l *layout) { delete(l.models, "ornith-fast") })
	await(t, "the series of the dropped model are gone", func() bool { return !shows() })
}

// TestAlertsNameCommandsThatExist: what an alert or the documentation of metrics says to type is a command of iopctl.
func TestAlertsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	text := metrics.Document() + readText(t, filepath.Join(watching, "rules.yaml"))
	commands := map[string]bool{}
	for _, m := range regexp.MustCompile(`iopctl(?: --edge \{\{[^}]*\}\}| --edge [A-Z:]+)?((?: [a-z]+)+)`).FindAllStringSubmatch(text, -1) {
		commands[strings.TrimSpace(m[1])] = true
	}
	if len(commands) < 15 {
		t.Fatalf("only %d commands found", len(commands))
	}
	for c := range commands {
		words := strings.Fields(c)
		var help strings.Builder
		run := func(n int) bool {
			help.Reset()
			code := cli.Run(t.Context(), cli.Deps{}, append(slices.Clone(words[:n]), "--help"), strings.NewReader(""), &help, &help)
			return code == 0 && strings.Contains(help.String(), "iopctl "+strings.Join(words[:n], " "))
		}
		// Behind a command the sentence may go on: a group has to be followed by one of its commands.
		group := run(1) && strings.Contains(help.String(), "Available Commands") || strings.Contains(help.String(), "Commands:")
		switch {
		case !run(1):
			t.Errorf("there is no command %q", "iopctl "+c)
		case group && (len(words) < 2 || !run(2)):
			t.Errorf("there is no command %q", "iopctl "+c)
		}
	}
}

// TestMetricsOfACluster: what a single edge does not have.
func TestMetricsOfACluster(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	c := newCluster(t, shared(b, 2), 3, (*cluster).secure)
	leader := c.leader()
	w := c.at(leader)
	w.iopctl(0, "cluster", "verify")
	for name, want := range map[string]float64{
		"iop_cluster_members": 3, "iop_cluster_voters": 3, "iop_digest_mismatched_replicas": 0, "iop_leader": 1,
	} {
		if got := w.metric(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if w.metric("iop_digest_checks_total", `verdict="same"`) != 1 || w.metric("iop_digest_check_timestamp_seconds") <= 0 {
		t.Error("the leader does not tell that it compared the replicas")
	}
	if left := w.metric("iop_certificate_expiry_seconds", `certificate="edge"`); left <= 0 {
		t.Errorf("the certificate ends in %v s", left)
	}
	await(t, "both others answer", func() bool { return w.metric("iop_peer_up") == 2 })
	lost := c.followers()[0]
	c.kill(lost)
	await(t, "the one that was killed does not answer", func() bool { return w.metric("iop_peer_up", `"`+c.id(lost)+`"`) == 0 })
	if w.metric("iop_has_leader") != 1 {
		t.Error("two of three have no leader")
	}
}
