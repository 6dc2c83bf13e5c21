package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/edged/refresh"
	"iop/fsm"
	"iop/storage"
)

// answering is an edge that answers everything with one body; it tells what it was asked.
func answering(t *testing.T, status int, body any) (address string, asked *string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	asked = new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		*asked = r.Method + " " + r.URL.String() + " " + string(sent)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func report(result string) *adminapi.RefreshReport {
	r := refresh.NewReport()
	r.Result, r.Revision = result, 7
	return r
}

func TestRefreshExitCodes(t *testing.T) {
	noLeader := adminapi.ErrorBody{Error: &adminapi.Error{Code: "no_leader", Message: "nobody leads", Cure: "wait"}}
	for _, c := range []struct {
		name   string
		status int
		body   any
		code   int
		says   string
	}{
		{"applied", 200, report("applied"), 0, "applied"},
		{"no change", 200, report("no_change"), 0, "no_change"},
		{"dry run", 200, report("dry_run"), 0, "dry_run"},
		{"invalid", 422, report("invalid"), 2, "not valid"},
		{"restart required", 409, report("restart_required"), 3, "--live-only"},
		{"conflict", 409, report("conflict"), 4, "revision 7"},
		{"no leader", 503, noLeader, 5, "nobody leads"},
	} {
		t.Run(c.name, func(t *testing.T) {
			edge, _ := answering(t, c.status, c.body)
			code, out, errs := run(t, "refresh", "--edge", edge)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("code %d, want %d with %q:\n%s%s", code, c.code, c.says, out, errs)
			}
			if r, ok := c.body.(*adminapi.RefreshReport); ok {
				_, out, _ := run(t, "refresh", "--edge", edge, "-o", "json")
				var got adminapi.RefreshReport
				if err := json.Unmarshal([]byte(out), &got); err != nil || got.Result != r.Result {
					t.Errorf("%v in %s", err, out)
				}
			}
		})
	}
}

func TestRefreshShowsWhatChanges(t *testing.T) {
	r := report("dry_run")
	two := 2
	r.File = "/etc/iop/edge.yaml"
	r.ChangedPaths = []adminapi.ChangedPath{{Path: "nodes[n].providers[p].capacity", Old: json.RawMessage("4"), New: json.RawMessage("2"), Class: "live"}}
	r.WaitersAffected, r.Waiters = 1, []adminapi.AffectedWaiter{{Request: "r-1", Model: "m", Loses: []string{"p"}}}
	r.ProvidersOverCapacity = []adminapi.OverCapacity{{Provider: "p", InFlight: 4, Capacity: &two}}
	r.PushedNodes, r.PendingNodes = []string{"n"}, []string{"n2"}
	r.Warnings = []adminapi.ConfigWarning{{Path: "edge.listen.node", Line: 3, Text: "no TLS"}}
	edge, asked := answering(t, 200, r)
	file := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.WriteFile(file, []byte("edge: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := run(t, "refresh", "--dry-run", "--live-only", "--expected-revision", "6", "-f", file, "--edge", edge, "-o", "text")
	if code != 0 || *asked != "POST /refresh?dry_run=true&expected_revision=6&live_only=true edge: {}\n" {
		t.Errorf("code %d, asked %q: %s", code, *asked, errs)
	}
	for _, want := range []string{
		"/etc/iop/edge.yaml:3: warning: edge.listen.node: no TLS", "nodes[n].providers[p].capacity  4    2    live", "1 waiting request changes its candidates",
		"r-1     m      p", "4/2   0/∞", "To push  n", "Pending  n2", "Revision  7",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestConfigShowAndHistory(t *testing.T) {
	edge, _ := answering(t, 200, adminapi.Config{Revision: 3, Document: json.RawMessage(`{"provider_pool":{"max_queue":5}}`)})
	if code, out, errs := run(t, "config", "show", "--edge", edge); code != 0 || !strings.Contains(out, "revision 3") || !strings.Contains(out, "provider_pool:\n  max_queue: 5\n") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	edge, _ = answering(t, 200, adminapi.ConfigHistory{Revisions: []adminapi.ConfigRevision{{Revision: 3, Index: 44, Edge: "e1", Source: "signal"}}})
	if code, out, errs := run(t, "config", "history", "--edge", edge); code != 0 || !strings.Contains(out, "44") || !strings.Contains(out, "signal") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// refreshFile is an edge file whose provider has a capacity.
func refreshFile(t *testing.T, capacity int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "edge.yaml")
	text := fmt.Sprintf(`
edge: { id: edge-1, data_dir: d, listen: { openai: "127.0.0.1:0", node: "127.0.0.1:0" } }
models: [ { id: m, providers: { p1: s } } ]
nodes:
  - id: n1
    token_hash_sha256: %q
    adapters: [ { id: a, type: vllm, base_url: "http://127.0.0.1:1/v1" } ]
    providers: [ { id: p1, type: vllm, adapter: a, models: [s], capacity: %d } ]
`, configs.HashToken("t"), capacity)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// configured makes the data directory of a stopped edge that runs the file.
func configured(t *testing.T, file string) string {
	t.Helper()
	e, _, err := configs.LoadEdge(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/edge-1"
	s, err := storage.Open(t.Context(), storage.Options{Dir: dir, Replica: "edge-1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Do(t.Context(), &fsm.ApplyConfig{Force: true, Document: e.Canonical(), Config: refresh.Plan(&e.Cluster)})
	if err := errorOr(err, s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return dir
}

func errorOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func TestRefreshOfAStoppedEdge(t *testing.T) {
	running, other := refreshFile(t, 2), refreshFile(t, 3)
	dir := configured(t, running)
	if code, out, errs := run(t, "refresh", "--dry-run", "-f", running, "--data-dir", dir); code != 0 || !strings.Contains(out, "no_change") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	code, out, errs := run(t, "refresh", "--dry-run", "-f", other, "--data-dir", dir)
	if code != 0 || !strings.Contains(out, "dry_run") || !strings.Contains(out, "nodes[n1].providers[p1].capacity  2    3    live") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, _ := run(t, "config", "diff", other, "--data-dir", dir); code != 0 || !strings.Contains(out, "1 difference from revision 1") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := run(t, "config", "show", "--data-dir", dir); code != 0 || !strings.Contains(out, "capacity: 2") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, _ := run(t, "refresh", "--dry-run", "-f", other, "--data-dir", dir, "--expected-revision", "9"); code != 4 {
		t.Errorf("with another revision expected: %d", code)
	}
	for _, args := range [][]string{
		{"refresh", "-f", other, "--data-dir", dir},
		{"refresh", "--dry-run", "--data-dir", dir},
		{"config", "diff", "--data-dir", dir},
		{"refresh", "-f", "/does/not/exist"},
		{"refresh", "more"},
	} {
		if code, out, _ := run(t, args...); code != 2 {
			t.Errorf("%v: code %d\n%s", args, code, out)
		}
	}
}
