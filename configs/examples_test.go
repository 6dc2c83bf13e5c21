package configs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exampleEnv answers every variable, as a machine does that has been set up.
func exampleEnv(name string) (string, bool) { return "value-of-" + name, true }

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if strings.Contains(file, "node") {
				_, _, err = LoadNode(file, exampleEnv)
			} else {
				_, _, err = LoadEdge(file, exampleEnv)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The documented example writes the defaults out; they must be the real ones.
func TestEdgeExampleShowsTheDefaults(t *testing.T) {
	e, warnings, err := LoadEdge("examples/edge.yaml", exampleEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := NewEdge()
	want.Edge.ID, want.Edge.DataDir = "edge-1", "./data/edge-1"
	if diff := cmp.Diff(want.Edge, e.Edge); diff != "" {
		t.Errorf("own part differs from the defaults (-default +example):\n%s", diff)
	}
	if diff := cmp.Diff(want.ProviderPool, e.ProviderPool); diff != "" {
		t.Errorf("provider_pool differs from the defaults (-default +example):\n%s", diff)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
}

func TestDemoExamplesFitTogether(t *testing.T) {
	e, warnings, err := LoadEdge("examples/demo-edge.yaml", exampleEnv)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("edge: %v, warnings %v", err, warnings)
	}
	n, _, err := LoadNode("examples/demo-node.yaml", exampleEnv)
	if err != nil {
		t.Fatal(err)
	}
	if n.Node.ID != e.Nodes[0].ID || HashToken(n.Node.Token.Reveal()) != e.Nodes[0].TokenHashSHA256 || n.Node.Edges[0] != e.Edge.Listen.Node {
		t.Error("the node's id, token or address is not what the edge has")
	}
}
