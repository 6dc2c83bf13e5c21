package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
)

// TestConformanceOfARealLlama puts the table's requests to a real llama-server, as far as they need no script, and
// compares with what was observed before (-update writes it). Skipped as TestMainJobOnARealBackend is.
func TestConformanceOfARealLlama(t *testing.T) {
	server, model := os.Getenv("IOP_LLAMA_SERVER"), os.Getenv("IOP_LLAMA_MODEL")
	if server == "" || model == "" {
		t.Skip("no IOP_LLAMA_SERVER and IOP_LLAMA_MODEL")
	}
	w := newEmptyWorld(t, layout{})
	at := startLlama(t, w, server, model)
	var about struct {
		Build string `json:"build_info"`
	}
	readPage(t, at, "/props", &about)
	conformsTo(t, w, "llama", "llama-server "+about.Build, provider{id: "llama", url: at, kind: "llamacpp", capacity: 4})
}

// TestConformanceOfARealOllama is the same for an Ollama that runs: OLLAMA_URL, OLLAMA_MODEL.
func TestConformanceOfARealOllama(t *testing.T) {
	at, model := os.Getenv("OLLAMA_URL"), os.Getenv("OLLAMA_MODEL")
	if at == "" || model == "" {
		t.Skip("no OLLAMA_URL and OLLAMA_MODEL")
	}
	var about struct{ Version string }
	readPage(t, at, "/api/version", &about)
	if about.Version == "0.0.0" {
		about.Version = "(built from source)"
	}
	w := newEmptyWorld(t, layout{})
	conformsTo(t, w, "ollama", "Ollama "+about.Version, provider{id: "ollama", url: at, kind: "ollama", capacity: 4, window: 4096, serves: model})
}

func readPage(t *testing.T, at, path string, into any) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fetch(t, u.Host, path), into); err != nil {
		t.Fatal(err)
	}
}

// conformsTo compares what a provider of somebody's does with its recording.
func conformsTo(t *testing.T, w *world, file, title string, p provider) {
	t.Helper()
	w.layout = layout{providers: []provider{p}, models: map[string][]string{p.id: {p.id}}, threshold: 1_000_000}
	w.startEdge()
	w.startNode("n1")
	w.awaitLink("n1")
	k := &kind{w: w, name: p.id, tunnel: p.kind != "ollama", real: true}
	var b bytes.Buffer
	fmt.Fprintln(&b, title)
	for _, c := range conforms() {
		if !c.real {
			continue
		}
		cell := k.observe(t, &c)
		if want := c.expected(p.kind); cell != want {
			t.Logf("%s: %s; the fake: %s", c.name, cell, want)
		}
		fmt.Fprintf(&b, "%s = %s\n", c.name, strings.ReplaceAll(cell, "\n", " "))
	}
	w.awaitIdle()
	path := "testdata/conformance/" + file + ".txt"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, b.Bytes()) {
		t.Errorf("%s says otherwise than what was observed; look, and run with -update:\n%s", path, b.Bytes())
	}
}
