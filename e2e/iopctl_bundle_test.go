package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestBundleOfARunningEdge: the archive for support has what the edge knows, live and from its files, and nothing of the tokens,
// prompts and answers that went through it.
func TestBundleOfARunningEdge(t *testing.T) {
	t.Parallel()
	const prompt, key, client = "the-patient-has-a-rare-disease", "idempotent-private-key", "client-token-0123456789abcdef"
	b := newBackend(t, backend.Options{Limit: 1})
	l := shared(b, 1)
	w := newWorld(t, l)
	w.want(200, ask{prompt: prompt, key: key, token: client})
	w.awaitIdle()
	b.Set(backend.Plan{Hold: backend.BeforeHead})
	held := w.start(ask{prompt: prompt, key: key + "-2", token: client})
	lease := w.awaitLeases(1)[0]
	w.queue(ask{prompt: prompt, token: client, stream: true}, 1)

	file := w.path("help.tar.gz")
	w.iopctl(0, "debug", "bundle", "--edge", w.adminAddress(), "--data-dir", w.dataDir(), "-o", file)
	files := bundleOf(t, file)
	all := ""
	for name, text := range files {
		all += "\n" + name + "\n" + text
	}
	for _, secret := range []string{prompt, key, client, nodeToken("n1"), sha(nodeToken("n1")), sha(client)} {
		if strings.Contains(all, secret) {
			t.Errorf("the bundle holds %q", secret)
		}
	}
	for name, want := range map[string]string{
		"edge-1/status.json": `"p1"`, "edge-1/leases.json": lease.Request, "edge-1/queue.json": `"waiters"`, "edge-1/config.json": `"models"`,
		"edge-1/config-history.json": `"revision": 1`, "edge-1/cluster.json": `"edge-1"`, "edge-1/metrics.txt": "iop_", "edge-1/goroutines.txt": "goroutine profile",
		"edge-1/pulse.json": `"samples"`, "edge-1/nodes.json": `"n1"`, "edge-1/models.json": `"m"`, "edge-1/health.json": "ok",
		"data/log.jsonl": lease.Request, "data/leases.json": lease.Request, "data/queue.json": `"pending": 1`, "data/info.json": "edge-1", "manifest.json": `"missing": []`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %s: %s", name, want, tail(files[name], 20))
		}
	}
	b.LetAll()
	held.wait(t)
	w.awaitIdle()
}

func bundleOf(t *testing.T, file string) map[string]string {
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
