package configs

import (
	"fmt"
	"strings"
	"testing"
)

// largeFile is an edge file with 1,000 nodes, 5,000 providers and 2,000 models.
func largeFile() []byte {
	var b strings.Builder
	b.WriteString("edge: { id: e, data_dir: d, listen: { node: \"127.0.0.1:0\", openai: \"127.0.0.1:0\" } }\nmodels:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  - id: model-%d\n    providers: { provider-%d: served, provider-%d: served }\n", i, i, i+2000)
	}
	b.WriteString("nodes:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - id: node-%d\n    token_hash_sha256: %q\n    adapters: [ { id: a, type: vllm, base_url: \"http://127.0.0.1:8000/v1\" } ]\n    providers:\n", i, HashToken(fmt.Sprint(i)))
		for j := range 5 {
			fmt.Fprintf(&b, "      - { id: provider-%d, type: vllm, adapter: a, models: [served], capacity: 4 }\n", i*5+j)
		}
	}
	return []byte(b.String())
}

func BenchmarkLoadLarge(b *testing.B) {
	data := largeFile()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := ParseEdge(data, "large.yaml", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDocumentLarge(b *testing.B) {
	e, _, err := ParseEdge(largeFile(), "large.yaml", nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ParseCluster(e.Canonical()); err != nil {
			b.Fatal(err)
		}
	}
}
