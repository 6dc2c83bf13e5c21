package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"iop/configs"
)

// demoModel is the model that the built-in backend serves.
const demoModel = "demo"

// home is the directory of dev: its configuration, the node's token, the edge's data.
type home string

// openHome makes the directory; dir "" is a per-user cache.
func openHome(dir string) (home, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fault("name a directory with --data-dir", "find a directory for the data: %w", err)
		}
		dir = filepath.Join(cache, "iop", "dev")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fault("name another one with --data-dir", "find the data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fault("name a directory that you may write to with --data-dir", "make the data directory: %w", err)
	}
	return home(dir), nil
}

func (h home) edgeFile() string { return filepath.Join(string(h), "edge.yaml") }
func (h home) nodeFile() string { return filepath.Join(string(h), "node.yaml") }

// token is the node's, made once: a new one at each start would be a new configuration each time.
func (h home) token() (string, error) {
	file := filepath.Join(string(h), "node.token")
	data, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(data))) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", h.fault("read", err)
	}
	var random [24]byte
	_, _ = rand.Read(random[:]) // never fails
	token := "iop_" + hex.EncodeToString(random[:])
	return token, h.write(file, token+"\n")
}

func (h home) write(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return h.fault("write", err)
	}
	return nil
}

func (h home) fault(verb string, err error) error {
	return fault("make the directory writable, or name another one with --data-dir", verb+" the configuration of dev: %w", err)
}

// edgeText is the edge file of dev.
func (h home) edgeText(port, adminPort int, tokenHash string, backends []found) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written anew by every start of 'iopctl dev'; copy it to begin a configuration of your own.")
	line("edge:")
	line("  id: dev")
	line("  data_dir: %s", quoted(filepath.Join(string(h), "edge")))
	line(`  listen: { openai: "127.0.0.1:%d", node: "127.0.0.1:0", admin: "127.0.0.1:%d", cluster: "" }`, port, adminPort)
	line("  stop_timeout_ms: 10000")
	line("models:")
	line("  - { id: %s, providers: { demo: demo-words } }", demoModel)
	models := modelProviders(backends)
	for _, id := range slices.Sorted(maps.Keys(models)) {
		line("  - { id: %s, providers: { %s } }", quoted(id), strings.Join(models[id], ", "))
	}
	line("nodes:")
	line("  - id: dev-node")
	line("    alias: This machine")
	line("    token_hash_sha256: %s", tokenHash)
	line("    adapters:")
	line("      - { id: demo, type: demo }")
	for _, f := range backends {
		line("      - { id: %s, type: openai_compat, base_url: %s }", f.id, quoted(f.url))
	}
	line("    providers:")
	line("      - { id: demo, type: demo, adapter: demo, models: [demo-words], capacity: 2 }")
	for _, f := range backends {
		line("      # Found at start. One request at a time is safe for all; raise capacity to what it really takes.")
		line("      - { id: %s, type: %s, adapter: %s, models: %s, capacity: 1 }", f.id, f.kind, f.id, quoted(f.models))
	}
	return b.String()
}

// modelProviders gives, by model, the entries of its providers.
func modelProviders(backends []found) map[string][]string {
	models := map[string][]string{}
	for _, f := range backends {
		for _, m := range f.models {
			models[m] = append(models[m], fmt.Sprintf("%s: %s", f.id, quoted(m)))
		}
	}
	return models
}

// nodeText is the node file of dev.
func (h home) nodeText(edge, token string) string {
	return "# Written anew by every start of 'iopctl dev'.\n" +
		fmt.Sprintf("node: { id: dev-node, token: %s, edges: [%s] }\n", quoted(token), quoted(edge))
}

// quoted is a value as JSON, which YAML takes as it is.
func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("iopctl: encode a text: " + err.Error()) // texts and lists of texts always encode
	}
	return string(text)
}

// loadEdge writes the edge file and reads it back as edged does.
func (h home) loadEdge(text string, env configs.Env) (*configs.Edge, error) {
	if err := h.write(h.edgeFile(), text); err != nil {
		return nil, err
	}
	e, _, err := configs.LoadEdge(h.edgeFile(), env)
	return e, err
}

// loadNode writes the node file and reads it back as noded does.
func (h home) loadNode(text string, env configs.Env) (*configs.Node, error) {
	if err := h.write(h.nodeFile(), text); err != nil {
		return nil, err
	}
	n, _, err := configs.LoadNode(h.nodeFile(), env)
	return n, err
}
