package edged

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

// largeFile has 1,000 nodes, 5,000 providers and 2,000 models.
func largeFile(dir string, capacity int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "edge: { id: e1, data_dir: %q, listen: { openai: \"127.0.0.1:0\", node: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" } }\nmodels:\n", dir)
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
			fmt.Fprintf(&b, "      - { id: p%04d, type: vllm, adapter: a, models: [served], capacity: %d }\n", i*5+j, capacity)
		}
	}
	return []byte(b.String())
}

// BenchmarkLargeRefresh is a whole refresh of a large configuration, all providers changed, with the log on disk. stall-ms
// is the longest that a command of somebody else had to wait meanwhile.
func BenchmarkLargeRefresh(b *testing.B) {
	dir := b.TempDir() + "/data"
	config, _, err := configs.ParseEdge(largeFile(dir, 1), "large.yaml", nil)
	if err != nil {
		b.Fatal(err)
	}
	d, err := New(Options{Config: config})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	end := make(chan error, 1)
	go func() { end <- d.Run(ctx) }()
	<-d.Ready()
	stop, stalled := make(chan struct{}), make(chan time.Duration)
	go func() {
		var worst time.Duration
		for {
			select {
			case <-stop:
				stalled <- worst
				return
			default:
			}
			begin := time.Now()
			if _, err := d.tenure.Do(ctx, &fsm.Cancel{Request: "nobody"}); err != nil {
				b.Error(err)
			}
			worst = max(worst, time.Since(begin))
		}
	}()
	b.ResetTimer()
	for i := range b.N {
		r, err := d.refresh(ctx, adminapi.RefreshRequest{File: largeFile(dir, 2+i%7)})
		if err != nil || r.Result != adminapi.RefreshApplied || len(r.ChangedProviders) != 5000 {
			b.Fatal(r, err)
		}
	}
	b.StopTimer()
	close(stop)
	b.ReportMetric(float64((<-stalled).Milliseconds()), "stall-ms")
	cancel()
	if err := <-end; err != nil {
		b.Fatal(err)
	}
}
