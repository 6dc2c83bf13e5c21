package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkGateway puts iop (edged and noded, with durable admission) beside a plain net/http/httputil.ReverseProxy and
// no gateway at all, in front of the same backend, alternately in one run. Each is its own process. Metrics:
// iop-req/s, proxy-req/s and their ratio; the added latency over no gateway at p50 and p99, in milliseconds; CPU time per
// request, over all processes of the subject.
// E2E_BENCH_SLICE (default 1s) is how long each is measured at a time, E2E_BENCH_ROUNDS (default 4) how often.
func BenchmarkGateway(b *testing.B) {
	_, backend := startRole(b, "backend", "")
	plain, proxy := startRole(b, "proxy", backend)
	w := newWorld(b, layout{
		providers: []provider{{id: "p1", url: "http://" + backend + "/v1", capacity: 256}},
		models:    map[string][]string{"m": {"p1"}}, queue: 1024, log: "info",
	})
	subjects := []subject{
		{name: "direct", address: backend},
		{name: "proxy", address: proxy, processes: []*process{plain}},
		{name: "iop", address: w.edge.openai, processes: []*process{w.edge.process, w.nodes["n1"]}},
	}
	for _, route := range benchRoutes() {
		for _, stream := range []bool{false, true} {
			for _, clients := range []int{1, 64} {
				name := fmt.Sprintf("%s/%s/clients=%d", route[0], map[bool]string{false: "plain", true: "stream"}[stream], clients)
				b.Run(name, func(b *testing.B) {
					results := map[string]*measured{}
					for b.Loop() {
						for range benchRounds() {
							for _, s := range subjects {
								measure(b, results, s, clients, benchRequest(route[1], stream))
							}
						}
					}
					report(b, results)
				})
			}
		}
	}
	w.awaitIdle()
}

// benchRoutes are the routes that are measured. The backend knows chat alone, and answers so whatever it is asked: on the
// other two iop translates, while the proxy passes chat on.
func benchRoutes() [][2]string {
	return [][2]string{{"chat", "/v1/chat/completions"}, {"responses", "/v1/responses"}, {"messages", "/v1/messages"}}
}

// benchRequest is a whole request as bytes.
func benchRequest(path string, stream bool) []byte {
	a := ask{path: path, stream: stream, tag: "bench"}
	body := a.bytes()
	switch path {
	case "/v1/messages":
		body = fmt.Appendf(nil, `{"model":"m","max_tokens":500,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, stream)
	case "/v1/responses":
		body = fmt.Appendf(nil, `{"model":"m","store":false,"stream":%v,"input":"hello"}`, stream)
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// subject is what clients ask: an address, and the processes that work for it, the backend apart.
type subject struct {
	name, address string
	processes     []*process
}

// measured are the samples of one subject.
type measured struct {
	latencies []time.Duration
	took      time.Duration
	broken    int           // answers that ended too early
	cpu       time.Duration // of the subject's processes
}

// cpuMicros is the CPU time per request in microseconds.
func (m *measured) cpuMicros() float64 {
	return float64(m.cpu.Microseconds()) / float64(len(m.latencies))
}

func (m *measured) rate() float64 { return float64(len(m.latencies)) / m.took.Seconds() }

// at is the latency at a quantile, in milliseconds.
func (m *measured) at(q float64) float64 {
	return float64(m.latencies[int(q*float64(len(m.latencies)-1))]) / float64(time.Millisecond)
}

func report(b *testing.B, results map[string]*measured) {
	b.Helper()
	for _, m := range results {
		slices.Sort(m.latencies)
	}
	iop, proxy, direct := results["iop"], results["proxy"], results["direct"]
	b.ReportMetric(0, "ns/op") // an operation here is a whole round of measurements
	b.ReportMetric(iop.rate(), "iop-req/s")
	b.ReportMetric(proxy.rate(), "proxy-req/s")
	b.ReportMetric(direct.rate(), "direct-req/s")
	b.ReportMetric(iop.rate()/proxy.rate(), "iop/proxy")
	b.ReportMetric(iop.cpuMicros(), "iop-cpu-us/req")
	b.ReportMetric(proxy.cpuMicros(), "proxy-cpu-us/req")
	b.ReportMetric(float64(proxy.broken), "proxy-broken")
	b.ReportMetric(iop.at(0.5)-direct.at(0.5), "iop-added-p50-ms")
	b.ReportMetric(iop.at(0.99)-direct.at(0.99), "iop-added-p99-ms")
	b.ReportMetric(proxy.at(0.5)-direct.at(0.5), "proxy-added-p50-ms")
	b.ReportMetric(proxy.at(0.99)-direct.at(0.99), "proxy-added-p99-ms")
}

// measure lets clients ask one subject for a slice of time and adds the samples.
func measure(b *testing.B, results map[string]*measured, s subject, clients int, request []byte) {
	b.Helper()
	var mu sync.Mutex
	m := results[s.name]
	if m == nil {
		m = &measured{}
		results[s.name] = m
	}
	var all sync.WaitGroup
	began, used := time.Now(), cpuTime(s.processes)
	end := began.Add(benchSlice())
	for range clients {
		all.Go(func() {
			samples, broken, err := askUntil(s.address, request, end)
			mu.Lock()
			defer mu.Unlock()
			m.latencies = append(m.latencies, samples...)
			m.broken += broken
			if err != nil && s.name != "proxy" {
				b.Errorf("%s: %v", s.name, err)
			}
		})
	}
	all.Wait()
	m.took += time.Since(began)
	m.cpu += cpuTime(s.processes) - used
	if len(m.latencies) == 0 {
		b.Fatalf("%s answered nothing", s.name)
	}
}

// askUntil asks until the end, over a new connection after an answer that broke. The plain proxy breaks some: it sends
// the request's body on while the answer comes back already.
func askUntil(address string, request []byte, end time.Time) (samples []time.Duration, broken int, last error) {
	for time.Now().Before(end) {
		l, err := newLean(address, request)
		if err != nil {
			return samples, broken + 1, err
		}
		_, err = l.once() // it pays for the connection, and is no sample
		for err == nil && time.Now().Before(end) {
			var took time.Duration
			if took, err = l.once(); err == nil {
				samples = append(samples, took)
			}
		}
		_ = l.c.Close()
		if err != nil {
			broken, last = broken+1, err
		}
	}
	return samples, broken, last
}

func benchSlice() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("E2E_BENCH_SLICE")); err == nil {
		return d
	}
	return time.Second
}

func benchRounds() int {
	if n, err := strconv.Atoi(os.Getenv("E2E_BENCH_ROUNDS")); err == nil {
		return n
	}
	return 4
}

// cpuTime is what processes have used so far; 0 where /proc does not tell. The kernel counts it in 10 ms.
func cpuTime(processes []*process) time.Duration {
	ticks := 0
	for _, p := range processes {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			return 0
		}
		// utime and stime are the fields 14 and 15; the second field, a name in brackets, may hold spaces.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, s := range f[11:13] {
			n, _ := strconv.Atoi(s)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
