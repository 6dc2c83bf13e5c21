package configs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// minimal is the least edge file with a model, as a base for the tests.
const minimal = `edge:
  id: edge-1
  data_dir: ./data
  listen: { openai: "127.0.0.1:8080", node: "127.0.0.1:7443" }
models:
  - { id: m, providers: { p: served } }
nodes:
  - id: n
    token_hash_sha256: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    adapters:
      - { id: a, type: openai_compat, base_url: "http://127.0.0.1:8000/v1" }
    providers:
      - { id: p, type: vllm, adapter: a, models: [served], capacity: 2 }
`

func mustParse(t *testing.T, text string) (*Edge, []Warning) {
	t.Helper()
	e, warnings, err := ParseEdge([]byte(text), "test.yaml", faultyEnv)
	if err != nil {
		t.Fatal(err)
	}
	return e, warnings
}

// in puts text in front of the first occurrence of a marker of minimal.
func in(t *testing.T, marker, text string) string {
	t.Helper()
	if !strings.Contains(minimal, marker) {
		t.Fatalf("no %q in the base", marker)
	}
	return strings.Replace(minimal, marker, text+marker, 1)
}

func TestDefaultsOfElements(t *testing.T) {
	e, warnings := mustParse(t, minimal)
	p := e.Nodes[0].Providers[0]
	if !p.Enabled || p.LongContextCapacity != nil || p.Priority != 0 || p.Label != "vllm" || p.HealthCheck != nil {
		t.Errorf("provider %+v", p)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings %v", warnings)
	}
	e, _ = mustParse(t, strings.Replace(minimal, "capacity: 2", "capacity: 2, health_check: { path: /health }, long_context_capacity: 0", 1))
	p = e.Nodes[0].Providers[0]
	if p.HealthCheck.IntervalMS != 5000 || p.LongContextCapacity == nil || *p.LongContextCapacity != 0 {
		t.Errorf("provider %+v", p)
	}
}

func TestQueueBoundsAbsentAndZero(t *testing.T) {
	for _, c := range []struct {
		pool    string
		queue   int
		timeout Millis
	}{
		{"", 16, 30000},
		{"provider_pool:\n", 16, 30000},
		{"provider_pool: { max_queue: 0, queue_timeout_ms: 0 }\n", 16, 0},
		{"provider_pool: { max_queue: 5, queue_timeout_ms: 7 }\n", 5, 7},
	} {
		e, _ := mustParse(t, in(t, "models:", c.pool))
		if e.ProviderPool.MaxQueue != c.queue || e.ProviderPool.QueueTimeoutMS != c.timeout {
			t.Errorf("%q: %+v", c.pool, e.ProviderPool)
		}
	}
}

func TestEnvironmentInTheOwnPart(t *testing.T) {
	env := map[string]string{"DIR": "/var/lib/iop", "NAME": "1", "SIZE": "4096", "YES": "true", "ODD": "a: [b"}
	_, _, err := ParseEdge([]byte(in(t, "models:", `  max_body_bytes: ${SIZE}
  control_plane: { address: "10.0.0.1:1", token: "${ODD}" }
  cluster: { plaintext: "${YES}" }
`)), "f", func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err == nil || !strings.Contains(err.Error(), "edge.cluster.plaintext: expected true or false") {
		t.Errorf("a quoted reference is text: %v", err)
	}
	text := strings.NewReplacer("./data", "${DIR}/${NAME}", "id: edge-1", "id: edge-${NAME}").Replace(in(t, "models:", `  max_body_bytes: ${SIZE}
  control_plane: { address: "10.0.0.1:1", token: "${ODD}" }
  cluster:
    plaintext: ${YES}
`))
	e, _, err := ParseEdge([]byte(text), "f", func(n string) (string, bool) { v, ok := env[n]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if e.Edge.DataDir != "/var/lib/iop/1" || e.Edge.ID != "edge-1" || e.Edge.MaxBodyBytes != 4096 || !e.Edge.Cluster.Plaintext {
		t.Errorf("own part %+v", e.Edge)
	}
	if e.Edge.ControlPlane.Token.Reveal() != env["ODD"] {
		t.Error("the value of a variable was read as YAML")
	}
}

func TestNilEnvHasNoVariables(t *testing.T) {
	_, _, err := ParseEdge([]byte(strings.Replace(minimal, "./data", "${DIR}", 1)), "f", nil)
	if err == nil || !strings.Contains(err.Error(), "the environment variable DIR is not set") {
		t.Error(err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(minimal+strings.Repeat("# filler\n", FileMax/9)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "cannot be opened: no such file or directory; check the path, or start from configs/examples/edge.yaml",
		dir:                             "cannot be read: is a directory; give the path of a file",
		big:                             "the file is larger than 4 MiB; check that it is a configuration file",
	} {
		_, _, err := LoadEdge(path, nil)
		var problems *Problems
		if !errors.As(err, &problems) || err.Error() != path+": "+want {
			t.Errorf("%s:\n got %v\nwant %s", path, err, want)
		}
	}
}

func TestByteOrderMarkAndCRLF(t *testing.T) {
	mustParse(t, "\xef\xbb\xbf"+strings.ReplaceAll(minimal, "\n", "\r\n"))
}

func TestManyProblemsAreBounded(t *testing.T) {
	text := minimal + strings.Repeat("  - {}\n", 100_000) // quadratic work would show
	_, _, err := ParseEdge([]byte(text), "f", nil)
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) != problemsMax {
		t.Errorf("%d problems", len(problems.List))
	}
}

func TestMillisDuration(t *testing.T) {
	if got := Millis(1500).Duration().String(); got != "1.5s" {
		t.Error(got)
	}
}
