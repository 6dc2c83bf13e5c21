package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"iop/cli"
)

// unpacked are the files of a bundle, by their names below its directory.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		out[name] = string(text)
	}
}

// planted are secrets of each kind, that an edge should never show and shows here.
func planted() []string {
	return []string{
		"admin-token-of-this-shell", "iop_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE", "sk-proj-AbCdEf0123456789", "hunter2secret",
		"0011223344556677889900112233445566778899001122334455667788990011", "What is my grandmother's maiden name", "bearerValue.12345",
	}
}

func leakyEdge(t *testing.T) string {
	t.Helper()
	p := planted()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/metrics":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprintf(w, "iop_requests_admitted_by_the_machine_total{x=%q} 1\n", p[1])
		case "/config":
			_, _ = fmt.Fprintf(w, `{"revision":1,"document":{"nodes":[{"id":"n","token_hash_sha256":%q,"adapters":[{"base_url":"http://u:%s@host/v1","api_key":%q}]}]}}`, p[4], p[3], p[3])
		case "/queue":
			_, _ = fmt.Fprintf(w, `{"pending":1,"waiters":[{"request":"r-1","prompt":%q}]}`, p[5])
		case "/providers":
			_, _ = fmt.Fprintf(w, `{"providers":[{"id":"p1","prompt_tokens":5,"cause":"401 with Authorization: Bearer %s, key %s, %s"}]}`, p[6], p[2], p[0])
		case "/pulse":
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"error":{"code":"not_found","message":"no such page, %s","cure":"upgrade"}}`, p[1])
		default:
			_, _ = fmt.Fprint(w, `{"edge":"edge-1","empty":null}`)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestBundleHoldsNoSecret: the archive has what helps, and none of the secrets that were planted wherever there is room for one.
func TestBundleHoldsNoSecret(t *testing.T) {
	to, secrets := filepath.Join(t.TempDir(), "help.tar.gz"), planted()
	code, out, errs := run(t, "debug", "bundle", "--edge", leakyEdge(t), "--token", secrets[0], "--data-dir", stopped(t), "-o", to)
	if code != 0 || !strings.Contains(out, to) || !strings.Contains(out, "1 could not be had") {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}
	files := unpacked(t, to)
	for name, text := range files {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q:\n%s", name, secret, text)
			}
		}
	}
	for name, want := range map[string]string{
		"edge-1/status.json": `"edge": "edge-1"`, "edge-1/metrics.txt": "iop_requests_admitted_by_the_machine_total", "edge-1/queue.json": `"r-1"`,
		"edge-1/providers.json": `"prompt_tokens": 5`, "edge-1/goroutines.txt": "", "data/log.jsonl": `"kind":"admit"`, "data/queue.json": `"r-2"`,
		"data/leases.json": `"r-1"`, "data/info.json": "edge-1", "data/config.json": "revision",
	} {
		if text, ok := files[name]; !ok || !strings.Contains(text, want) {
			t.Errorf("%s lacks %q: %s", name, want, text)
		}
	}
	var m struct {
		Missing []struct{ Name string }
		Removed map[string]int
		Files   []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &m); err != nil || len(m.Files) != len(files)-1 {
		t.Errorf("%v: %s", err, files["manifest.json"])
	}
	if len(m.Missing) != 1 || m.Missing[0].Name != "edge-1/pulse.json" || len(m.Removed) < 6 {
		t.Errorf("%s", files["manifest.json"])
	}
}

// Of several edges each has its directory; one that is down is named, and costs one line.
func TestBundleOfSeveralEdges(t *testing.T) {
	to := filepath.Join(t.TempDir(), "help.tar.gz")
	code, _, errs := run(t, "debug", "bundle", "--edge", closedPort(t), "--edge", leakyEdge(t), "-o", to)
	if code != 0 {
		t.Fatal(errs)
	}
	files := unpacked(t, to)
	if files["edge-2/status.json"] == "" || files["edge-1/status.json"] != "" || !strings.Contains(files["manifest.json"], "connection refused") {
		t.Errorf("%s", files["manifest.json"])
	}
}

// Nothing to be had: no file, and what to do.
func TestBundleOfNothing(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := run(t, "debug", "bundle", "--edge", closedPort(t), "-o", filepath.Join(dir, "help.tar.gz"))
	if code != cli.ExitFailure || !strings.Contains(errs, "nothing to pack") || !strings.Contains(errs, "cure: start edged") {
		t.Errorf("code %d: %s", code, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	if code, _, errs := run(t, "debug", "bundle", "--records", "0"); code != cli.ExitUsage || !slices.Contains(strings.Fields(errs), "--records") {
		t.Errorf("code %d: %s", code, errs)
	}
}
