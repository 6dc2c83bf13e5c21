package e2e

import (
	"fmt"
	"slices"
	"testing"

	"iop/e2e/otlp"
)

// BenchmarkTraces puts three systems side by side, in front of the same backend, alternately in one run: without traces,
// with traces of which the ratio (0) records none, and with all requests recorded at edge and node and exported to a
// collector of this process. Metrics: requests per second and CPU time of both daemons per request, as they are and as
// ratios to those without traces.
func BenchmarkTraces(b *testing.B) {
	_, backend := startRole(b, "backend", "")
	collector, err := otlp.New("grpc")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(collector.Close)
	collector.Set(otlp.Forgets)
	var subjects []subject
	for _, name := range []string{"off", "unsampled", "sampled"} {
		l := layout{
			providers: []provider{{id: "p1", url: "http://" + backend + "/v1", capacity: 256}},
			models:    map[string][]string{"m": {"p1"}}, queue: 1024, log: "info",
		}
		if name != "off" {
			ratio := map[string]float64{"unsampled": 0, "sampled": 1}[name]
			l.edge = map[string]any{"traces": map[string]any{"endpoint": collector.URL, "sample_ratio": ratio}}
			l.node = l.edge
		}
		w := newWorld(b, l)
		subjects = append(subjects, subject{name: name, address: w.edge.openai, processes: []*process{w.edge.process, w.nodes["n1"]}})
	}
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			results := map[string]*measured{}
			for b.Loop() {
				for range benchRounds() {
					for _, s := range subjects {
						measure(b, results, s, clients, benchRequest("/v1/chat/completions", false))
					}
				}
			}
			b.ReportMetric(0, "ns/op") // an operation here is a whole round of measurements
			off := results["off"]
			for name, m := range results {
				slices.Sort(m.latencies)
				b.ReportMetric(m.rate(), name+"-req/s")
				b.ReportMetric(m.cpuMicros(), name+"-cpu-us/req")
				if name != "off" {
					b.ReportMetric(m.rate()/off.rate(), name+"/off")
					b.ReportMetric(m.cpuMicros()/off.cpuMicros(), name+"/off-cpu")
				}
			}
		})
	}
	if collector.Asked() == 0 {
		b.Error("nothing was exported")
	}
}
