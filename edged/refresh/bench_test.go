package refresh

import (
	"fmt"
	"strings"
	"testing"

	"iop/configs"
)

// largeFile has 1,000 nodes, 5,000 providers and 2,000 models.
func largeFile(capacity int) []byte {
	var b strings.Builder
	b.WriteString("edge: { id: e1, data_dir: d, listen: { openai: \"127.0.0.1:0\", node: \"127.0.0.1:0\" } }\nprovider_pool: { max_queue: 20000 }\nmodels:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  - id: model-%04d\n    generation: { max_tokens: 4096, temperature: 0.7 }\n    providers:\n", i)
		for j := range 5 {
			fmt.Fprintf(&b, "      p%04d: served\n", (i*5+j)%5000)
		}
	}
	b.WriteString("nodes:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - id: node-%04d\n    token_hash_sha256: \"a%063x\"\n    adapters:\n      - { id: a, type: vllm, base_url: \"http://127.0.0.1:8000/v1\" }\n    providers:\n", i, i+1)
		for j := range 5 {
			fmt.Fprintf(&b, "      - { id: p%04d, type: vllm, adapter: a, models: [served], capacity: %d, context_window_tokens: 100000 }\n", i*5+j, capacity)
		}
	}
	return []byte(b.String())
}

// BenchmarkLargeFile is what a refresh costs before it proposes anything: load and check the file, compare it with what
// runs, make the plan. Every provider differs.
func BenchmarkLargeFile(b *testing.B) {
	e, _, err := configs.ParseEdge(largeFile(4), "large.yaml", nil)
	if err != nil {
		b.Fatal(err)
	}
	running, text := Running{Cluster: &e.Cluster, Self: &e.Edge}, largeFile(5)
	b.ReportAllocs()
	for b.Loop() {
		candidate, _, err := configs.ParseEdge(text, "large.yaml", nil)
		if err != nil {
			b.Fatal(err)
		}
		p := Judge(running, candidate, false)
		if len(p.Report.ChangedProviders) != 5000 || p.Target == nil {
			b.Fatal(p.Report.Result)
		}
		Plan(p.Target)
	}
}
