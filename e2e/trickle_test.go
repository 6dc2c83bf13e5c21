package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// tricklerRole is a backend whose streams say when they were written: one piece each pace, for ever, or as the first line
// of the body tells.
const tricklerRole = "trickler"

// tricklePace is the time between two pieces of a stream whose client does not ask for more with fastTag.
const (
	tricklePace = 10 * time.Second
	fastPace    = 2 * time.Millisecond
	fastTag     = "make-haste"
)

// serveTrickle answers each request with a stream of pieces, which hold the time in nanoseconds between two @.
func serveTrickle(l net.Listener) {
	head := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			pace := tricklePace
			r := bufio.NewReaderSize(c, 1<<10)
			n, _, err := readHead(r)
			if err != nil {
				return
			}
			body, err := r.Peek(n)
			if err != nil {
				return
			}
			if bytes.Contains(body, []byte(fastTag)) {
				pace = fastPace
			}
			if _, err = c.Write(head); err != nil {
				return
			}
			for {
				piece := fmt.Sprintf(`data: {"id":"run-1","object":"chat.completion.chunk","created":1,"model":"served/p1",`+
					`"choices":[{"index":0,"delta":{"content":"@%d@"},"finish_reason":null}]}`+"\n\n", time.Now().UnixNano())
				if _, err := c.Write(chunked(piece)); err != nil {
					return
				}
				time.Sleep(pace)
			}
		}()
	}
}

// BenchmarkChunk is what a piece of a stream takes from the backend's write to the client's read, through iop and a plain
// reverse proxy, above what it takes with nothing between. One client, one piece each 2 ms.
func BenchmarkChunk(b *testing.B) {
	subjects, w := trickled(b, 16)
	for _, route := range benchRoutes() {
		b.Run(route[0], func(b *testing.B) {
			request := bytes.Replace(benchRequest(route[1], true), []byte("hello"), []byte("hello "+fastTag), 1)
			request = bytes.Replace(request, []byte("Content-Length: "), []byte("Connection: close\r\nContent-Length: "), 1)
			request = recounted(request)
			took := map[string][]time.Duration{}
			for b.Loop() {
				for range benchRounds() {
					for _, s := range subjects {
						took[s.name] = append(took[s.name], pieces(b, s.address, request, int(benchSlice()/fastPace))...)
					}
				}
			}
			at := func(name string, q float64) float64 {
				slices.Sort(took[name])
				return float64(took[name][int(q*float64(len(took[name])-1))]) / float64(time.Microsecond)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(at("direct", 0.5), "direct-p50-us")
			for _, name := range []string{"proxy", "iop"} {
				b.ReportMetric(at(name, 0.5)-at("direct", 0.5), name+"-added-p50-us")
				b.ReportMetric(at(name, 0.99)-at("direct", 0.99), name+"-added-p99-us")
			}
			w.awaitIdle()
		})
	}
}

// recounted gives a request the length that its body has.
func recounted(request []byte) []byte {
	head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	before, _, _ := bytes.Cut(head, []byte("Content-Length: "))
	return fmt.Appendf(nil, "%sContent-Length: %d\r\n\r\n%s", before, len(body), body)
}

// trickled is iop and a plain proxy in front of one trickling backend, and that itself.
func trickled(b *testing.B, capacity int) ([]subject, *world) {
	_, address := startRole(b, tricklerRole, "")
	plain, proxy := startRole(b, "proxy", address)
	w := newWorld(b, layout{
		providers: []provider{{id: "p1", url: "http://" + address + "/v1", capacity: capacity}},
		models:    map[string][]string{"m": {"p1"}}, queue: 1024, log: "info",
	})
	return []subject{
		{name: "direct", address: address},
		{name: "proxy", address: proxy, processes: []*process{plain}},
		{name: "iop", address: w.edge.openai, processes: []*process{w.edge.process, w.nodes["n1"]}},
	}, w
}

// pieces reads a stream and returns how old each of its next n pieces was when it came.
func pieces(b *testing.B, address string, request []byte, n int) (ages []time.Duration) {
	b.Helper()
	c, r := begun(b, address, request)
	defer func() { _ = c.Close() }()
	for len(ages) < n {
		line, err := r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if at, ok := written(line); ok {
			ages = append(ages, time.Since(time.Unix(0, at)))
		}
	}
	return ages
}

// begun sends a request for a stream and reads up to the first piece.
func begun(b *testing.B, address string, request []byte) (net.Conn, *bufio.Reader) {
	b.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReaderSize(c, 4<<10)
	if _, first, err := readHead(r); err != nil || !strings.Contains(first, " 200 ") {
		b.Fatalf("%q %v", first, err)
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := written(line); ok {
			return c, r
		}
	}
}

// written finds the time in a line with one piece.
func written(line []byte) (int64, bool) {
	parts := bytes.Split(line, []byte("@"))
	if len(parts) != 3 {
		return 0, false
	}
	at, err := strconv.ParseInt(string(parts[1]), 10, 64)
	return at, err == nil
}

// idleStreams is how many streams BenchmarkIdleStreams opens, E2E_BENCH_STREAMS or 10,000 unless the system allows no
// process (the proxy has two connections for each) that many open files.
func idleStreams(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("E2E_BENCH_STREAMS"))
	if err != nil {
		n = 10_000
	}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		b.Skip("it needs /proc")
	}
	for line := range strings.Lines(string(limits)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max open files") {
			if most, err := strconv.Atoi(f[4]); err == nil {
				n = min(n, (most-200)/2)
			}
		}
	}
	return n
}

// BenchmarkIdleStreams is the memory that a stream takes while nothing comes (a piece each 10 s), of many at once: resident
// bytes per stream of edged, noded and a plain reverse proxy, and the ratio of both daemons to the proxy.
func BenchmarkIdleStreams(b *testing.B) {
	n := idleStreams(b)
	for _, route := range benchRoutes() {
		b.Run(route[0], func(b *testing.B) {
			subjects, w := trickled(b, n) // new ones, since what a process once had it keeps for a while
			per := map[string]float64{}
			for b.Loop() {
				for _, s := range subjects[1:] {
					before := map[string]float64{}
					for _, p := range s.processes {
						before[p.name] = resident(b, p)
					}
					heap, stacks := w.metric("go_memstats_heap_inuse_bytes"), w.metric("go_memstats_stack_inuse_bytes")
					open := openMany(b, s.address, benchRequest(route[1], true), n)
					for _, p := range s.processes {
						per[p.name] = (resident(b, p) - before[p.name]) / float64(n)
					}
					if s.name == "iop" {
						per["edged-heap"] = (w.metric("go_memstats_heap_inuse_bytes") - heap) / float64(n)
						per["edged-stack"] = (w.metric("go_memstats_stack_inuse_bytes") - stacks) / float64(n)
					}
					for _, c := range open {
						_ = c.Close()
					}
					w.awaitIdle()
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(n), "streams")
			for name, bytes := range per {
				b.ReportMetric(bytes/1024, strings.ReplaceAll(name, " ", "-")+"-KiB/stream")
			}
			b.ReportMetric((per["edged"]+per["noded n1"])/per["proxy"], "iop/proxy")
			b.ReportMetric(per["edged"]/per["proxy"], "edged/proxy")
		})
	}
}

// openMany opens streams until each has its first piece.
func openMany(b *testing.B, address string, request []byte, n int) []net.Conn {
	b.Helper()
	out := make([]net.Conn, n)
	var all sync.WaitGroup
	for k := range 32 {
		all.Go(func() {
			for i := k; i < n && !b.Failed(); i += 32 {
				out[i], _ = begun(b, address, request)
			}
		})
	}
	all.Wait()
	return out
}

// resident is a process's memory, in bytes.
func resident(b *testing.B, p *process) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			kib, _ := strconv.ParseFloat(f[1], 64)
			return kib * 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
