package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/configs"
)

func newHome(t *testing.T) home {
	t.Helper()
	h, err := openHome(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What dev writes is a good configuration, with any model name that a backend may have.
func TestFilesOfDev(t *testing.T) {
	h := newHome(t)
	token, err := h.token()
	if err != nil {
		t.Fatal(err)
	}
	odd := `we: "ird" {name} # 맥 $HOME`
	backends := []found{
		{place{11434, "ollama", configs.ProviderOllama, "Ollama", "http://127.0.0.1:11434/v1"}, []string{"llama3.2:1b", odd}},
		{place{8081, "local-8081", "llamacpp", "llama.cpp", "http://127.0.0.1:8081/v1"}, []string{"llama3.2:1b"}},
	}
	e, err := h.loadEdge(h.edgeText(0, 0, configs.HashToken(token), backends), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{
		demoModel:     {"demo": "demo-words"},
		"llama3.2:1b": {"ollama": "llama3.2:1b", "local-8081": "llama3.2:1b"},
		odd:           {"ollama": odd},
	}
	got := map[string]map[string]string{}
	for _, m := range e.Models {
		got[m.ID] = m.Providers
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	n, err := h.loadNode(h.nodeText("127.0.0.1:7", token), nil)
	if err != nil {
		t.Fatal(err)
	}
	if configs.HashToken(n.Node.Token.Reveal()) != e.Nodes[0].TokenHashSHA256 || n.Node.ID != e.Nodes[0].ID {
		t.Error("the node file does not belong to the edge file")
	}
	text, err := os.ReadFile(h.edgeFile())
	if err != nil || strings.Contains(string(text), token) {
		t.Errorf("the edge file holds the token (%v)", err)
	}
}

// A new token would be a new configuration at each start.
func TestTokenOfDevStays(t *testing.T) {
	h := newHome(t)
	first, err := h.token()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := h.token(); err != nil || second != first || len(first) < 32 {
		t.Errorf("%q, then %q, %v", first, second, err)
	}
	info, err := os.Stat(filepath.Join(string(h), "node.token"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read it: %v %v", info.Mode(), err)
	}
}

func TestHomeThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openHome(filepath.Join(file, "below"))
	f, ok := err.(*faultError) //nolint:errorlint // it is not wrapped
	if !ok || !strings.Contains(f.Remedy(), "--data-dir") || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
