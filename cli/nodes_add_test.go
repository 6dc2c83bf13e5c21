package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAddedNodeThatNothingLeadsToSaysSo: adding providers is half of it; requests come by way of models.
func TestAnAddedNodeThatNothingLeadsToSaysSo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "n.yaml")
	text := "adapters: [{ id: a, type: demo }, { id: c, type: cli, command: [x] }]\nproviders:\n" +
		"  - { id: p1, type: demo, adapter: a, models: [m], capacity: 1 }\n  - { id: p2, type: demo, adapter: a, models: [m], capacity: 1 }\n" +
		"  - { id: p3, type: cli, adapter: c, models: [m] }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	edge := edgeWith(t, map[string]string{
		"/nodes":         `{"result":"applied","revision":2}`,
		"/nodes/n1/join": `{"node":"n1","url":"http://gw:8080"}`,
		"/models":        `{"models":[{"id":"m","providers":[{"provider":"p1","served":"m"}]}]}`,
	})
	if out := made(t, "nodes", "add", "n1", "-f", file, "--edge", edge); !strings.HasSuffix(out, "No model leads to p2 yet: name it in the edge file under the providers of a model, then iopctl refresh.\n") {
		t.Error(out)
	}
}
