package configs

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What is accepted but likely not meant is said once, with its place.
func TestWarnings(t *testing.T) {
	peers := func(n int) string {
		entries := []string{`{ id: edge-1, address: "10.0.0.1:1" }`, `{ id: e2, address: "10.0.0.2:1" }`, `{ id: e3, address: "10.0.0.3:1" }`}
		return "  cluster: { plaintext: true, peers: [ " + strings.Join(entries[:n], ", ") + " ] }\n"
	}
	for _, c := range []struct{ name, old, with, path, text string }{
		{"open node listener, accepted", `node: "127.0.0.1:7443"`, "node: \":7443\" }\n  link: { plaintext: true", "", ""},
		{"open api without tokens", `"127.0.0.1:8080"`, `":8080"`, "openai.principal_tokens", "everybody who reaches :8080"},
		{"two replicas", "models:", peers(2) + "models:", "edge.cluster.peers", "2 replicas survive no more losses than 1"},
		{"three replicas", "models:", peers(3) + "models:", "", ""},
		{"short admin token", "models:", "  admin: { token: short }\nmodels:", "edge.admin.token", "less than 16 characters"},
		{"admin and view token", "models:", "  admin: { token: 0123456789abcdef, view_token: fedcba9876543210 }\nmodels:", "", ""},
		{"a2a", `node: "127`, `a2a: "127.0.0.1:1", node: "127`, "edge.listen.a2a", "does not serve A2A"},
		{"control plane", "models:", "  control_plane: { address: \"10.0.0.9:1\" }\nmodels:", "edge.control_plane.address", "does not dial"},
		{"no models", "  - { id: m, providers: { p: served } }\n", "", "models", "every request is answered 404"},
		{"a model without provider", "{ id: m, providers: { p: served } }", "{ id: m }", "models[0].providers", "has no provider"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(minimal, c.old) {
				t.Fatalf("no %q in the base", c.old)
			}
			_, warnings, err := ParseEdge([]byte(strings.Replace(minimal, c.old, c.with, 1)), "f", nil)
			switch {
			case err != nil:
				t.Fatal(err)
			case c.path == "" && len(warnings) > 0, c.path != "" && len(warnings) != 1:
				t.Fatalf("warnings %v", warnings)
			case c.path != "" && (warnings[0].Path != c.path || !strings.Contains(warnings[0].Text, c.text)):
				t.Errorf("got %q, want %q at %s", warnings[0], c.text, c.path)
			}
		})
	}
}

func TestNodeWarnings(t *testing.T) {
	text := "node: { id: n, token: in-the-file, edges: [\"127.0.0.1:1\"] }\nenv: { A: \"\" }\n"
	_, warnings, err := ParseNode([]byte(text), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 2 || warnings[0].Path != "node.token" || warnings[1].Path != "env.A" {
		t.Errorf("warnings %v", warnings)
	}
	if strings.Contains(warnings[0].String(), "in-the-file") {
		t.Error("the warning shows the token")
	}
}

// A token in a file that only its owner can read is where noded join puts it: no reason to warn at every start.
func TestTokenInAPrivateFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permissions like these")
	}
	path := filepath.Join(t.TempDir(), "node.yaml")
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o400: 0, 0o640: 1, 0o644: 1} {
		if err := os.WriteFile(path, []byte("node: { id: n, token: in-the-file, edges: [\"127.0.0.1:1\"] }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, warnings, err := LoadNode(path, nil); err != nil || len(warnings) != want {
			t.Errorf("%v: warnings %v, %v, want %d", mode, warnings, err, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// The rules also hold for configurations made in code, where there is no file.
func TestValidateWithoutAFile(t *testing.T) {
	e, _, err := LoadEdge("examples/edge.yaml", exampleEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("a loaded file: %v", err)
	}
	e.Nodes[0].Providers[0].Capacity = 0
	e.Edge.ID = ""
	err = e.Validate()
	if err == nil || !strings.Contains(err.Error(), "nodes[0].providers[0].capacity: is missing") || !strings.Contains(err.Error(), "edge.id: is missing") {
		t.Errorf("%v", err)
	}
	n := NewNode()
	n.Node = NodeSelf{ID: "n", Token: "t", Edges: []string{"127.0.0.1:1"}}
	if err := n.Validate(); err != nil {
		t.Errorf("a node: %v", err)
	}
}
