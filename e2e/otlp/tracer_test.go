package otlp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/e2e/otlp"
	"iop/proto/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func collector(t testing.TB, protocol string) *otlp.Collector {
	t.Helper()
	c, err := otlp.New(protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func tracer(t testing.TB, o spans.Options) *spans.Tracer {
	t.Helper()
	if o.Ratio == 0 {
		o.Ratio = 1
	}
	o.Service, o.Instance, o.Version = "svc", "one", "v1"
	tr, err := spans.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, tr) })
	return tr
}

func shut(t testing.TB, tr *spans.Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func record(tr *spans.Tracer, n int) {
	for range n {
		s, _ := tr.Start("a", spans.Server, time.Now(), "", nil)
		s.End(time.Now())
	}
}

// What is recorded arrives over both protocols, with parents, times, attributes and headers as given. No variable of the
// environment has a say.
func TestSpansArrive(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=other",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-tenant=other", "OTEL_TRACES_SAMPLER": "always_off", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other", "OTEL_SERVICE_NAME": "other",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
	} {
		t.Setenv(name, value)
	}
	for _, protocol := range []string{spans.ProtocolGRPC, spans.ProtocolHTTP} {
		c := collector(t, protocol)
		tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: protocol, Headers: map[string]string{"authorization": "Bearer k"}})
		began := time.Unix(1_700_000_000, 5)
		root, passOn := tr.Start("root", spans.Server, began, asking, []string{"a=1", "b=2"})
		if passOn != "" || root.TraceID() != askingTrace {
			t.Fatalf("passed on %q, trace %s", passOn, root.TraceID())
		}
		child := root.Child("child", spans.Client, began.Add(time.Second), spans.Int("n", 7), spans.Text("long", strings.Repeat("x", 1000)))
		child.Event("moment", began.Add(2*time.Second), spans.Flag("ok", true))
		child.Fail("broke")
		child.End(began.Add(3 * time.Second))
		root.End(began.Add(4 * time.Second))
		linked, _ := tr.StartLinked("later", spans.Internal, began, child.Traceparent())
		linked.End(began)
		shut(t, tr)
		got := c.Spans()
		if len(got) != 3 {
			t.Fatalf("%s: %d spans", protocol, len(got))
		}
		x, r, l := got[0], got[1], got[2]
		if r.Name != "root" || r.Parent != "b7ad6b7169203331" || r.State != "a=1,b=2" || r.Kind != "server" || !r.Start.Equal(began) || !r.End.Equal(began.Add(4*time.Second)) || r.Error != "" {
			t.Errorf("%s: root %+v", protocol, r)
		}
		if x.Name != "child" || x.Parent != r.ID || x.Trace != r.Trace || x.Attrs["n"] != "7" || len(x.Attrs["long"]) != 256 || x.Error != "broke" || x.Attrs["error.type"] != "broke" ||
			x.Service != "svc" || x.Instance != "one" || x.Kind != "client" {
			t.Errorf("%s: child %+v", protocol, x)
		}
		if e, ok := x.Event("moment"); !ok || !e.At.Equal(began.Add(2*time.Second)) || e.Attrs["ok"] != "true" {
			t.Errorf("%s: event %+v", protocol, e)
		}
		if l.Trace == r.Trace || len(l.Links) != 1 || l.Links[0] != r.Trace || l.Parent != "" {
			t.Errorf("%s: linked %+v", protocol, l)
		}
		if c.Header("authorization") != "Bearer k" || c.Header("x-tenant") != "" {
			t.Errorf("%s: headers %q %q", protocol, c.Header("authorization"), c.Header("x-tenant"))
		}
		if n := tr.Counts(); n.Exported != 3 || n.Dropped+n.Failed != 0 {
			t.Errorf("%s: counts %+v", protocol, n)
		}
	}
}

// A collector that never answers holds nobody up: spans are dropped and counted, and the end comes within its bound.
func TestCollectorThatHangs(t *testing.T) {
	for _, protocol := range []string{spans.ProtocolGRPC, spans.ProtocolHTTP} {
		c := collector(t, protocol)
		c.Set(otlp.Hangs)
		tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: protocol, QueueMax: 16, Every: time.Millisecond, Timeout: time.Hour})
		record(tr, 1)
		await(t, func() bool { return c.Asked() > 0 })
		record(tr, 100) // nobody takes them off the queue
		if n := tr.Counts(); n.Dropped < 84 {
			t.Errorf("%s: counts %+v", protocol, n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		if err := tr.Close(ctx); err != nil {
			t.Errorf("%s: close: %v", protocol, err)
		}
		cancel()
		n := tr.Counts()
		if n.Exported != 0 || n.Failed+n.Dropped != 101 {
			t.Errorf("%s: counts %+v", protocol, n)
		}
		record(tr, 1) // nothing comes of it
		if m := tr.Counts(); m != n {
			t.Errorf("%s: after the end: %+v", protocol, m)
		}
	}
}

// lines is a log that a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A collector that refuses, or is not there, is told of once and not for each export, and comes back into use by itself.
func TestCollectorThatIsDown(t *testing.T) {
	for _, protocol := range []string{spans.ProtocolGRPC, spans.ProtocolHTTP} {
		c := collector(t, protocol)
		c.Set(otlp.Refuses)
		var log lines
		tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: protocol, Every: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for i := 1; i <= 5; i++ {
			record(tr, 1)
			await(t, func() bool { return tr.Counts().Failed >= uint64(i) })
		}
		c.Set(otlp.Takes)
		record(tr, 1)
		await(t, func() bool { return tr.Counts().Exported > 0 })
		if n := strings.Count(log.String(), "spans are lost"); n != 1 {
			t.Errorf("%s: %d complaints:\n%s", protocol, n, log.String())
		}
	}
	tr := tracer(t, spans.Options{Endpoint: "http://127.0.0.1:1", Protocol: spans.ProtocolGRPC, Every: time.Millisecond})
	record(tr, 3)
	await(t, func() bool { return tr.Counts().Failed >= 3 })
}

// The ratio decides by the trace's id, about as often as it says, and what a caller has decided is followed.
func TestWhatIsRecorded(t *testing.T) {
	c := collector(t, "grpc")
	tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: spans.ProtocolGRPC, Ratio: 0.25, QueueMax: 1})
	kept := 0
	for range 4000 {
		s, passOn := tr.Start("a", spans.Server, time.Now(), "", nil)
		if s.Recording() {
			kept++
			continue
		}
		if p, ok := spans.Parse(passOn); !ok || p.Sampled() {
			t.Fatalf("not recorded, and passed on as %q", passOn)
		}
	}
	if kept < 800 || kept > 1200 {
		t.Errorf("%d of 4000 are recorded", kept)
	}
	never := tracer(t, spans.Options{Endpoint: c.URL, Protocol: spans.ProtocolGRPC, Ratio: -1, AskedPerSecond: 1})
	if s, passOn := never.Start("a", spans.Server, time.Now(), refusing, nil); s.Recording() || passOn != refusing {
		t.Errorf("who does not want to be recorded: %v, passed on %q", s.Recording(), passOn)
	}
	if s, passOn := never.Start("a", spans.Server, time.Now(), asking, nil); s.TraceID() != askingTrace || passOn != "" {
		t.Errorf("who asks to be recorded: trace %q, passed on %q", s.TraceID(), passOn)
	}
	if s, _ := never.Start("a", spans.Server, time.Now(), "", nil); s.Recording() {
		t.Error("a ratio of 0 records")
	}
}

const (
	askingTrace = "0af7651916cd43dd8448eb211c80319c"
	asking      = "00-" + askingTrace + "-b7ad6b7169203331-01"
	refusing    = "00-" + askingTrace + "-b7ad6b7169203331-00"
)

// Clients that ask to be recorded, all of them, get no more than the allowance. The trace goes on, under another span's id,
// and says that it is not recorded; what one of our own processes has decided is followed.
func TestClientsThatAskToBeRecorded(t *testing.T) {
	c := collector(t, "grpc")
	tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: spans.ProtocolGRPC, Ratio: -1, AskedPerSecond: 3})
	at, recorded := time.Now(), 0
	for range 100 {
		s, passOn := tr.Start("a", spans.Server, at, asking, nil)
		if s.Recording() {
			recorded++
			continue
		}
		if p, ok := spans.Parse(passOn); !ok || p.Sampled() || !strings.Contains(passOn, askingTrace) || strings.Contains(passOn, "b7ad6b7169203331") {
			t.Fatalf("not recorded, and passed on as %q", passOn)
		}
	}
	if recorded != 3 {
		t.Errorf("%d are recorded, want the 3 of a second", recorded)
	}
	for range 10 {
		if s, _ := tr.Follow("node", spans.Server, at, asking, nil); s.TraceID() != askingTrace {
			t.Fatal("what was decided before is not followed")
		}
	}
	if s, passOn := tr.Follow("node", spans.Server, at, refusing, nil); s.Recording() || passOn != refusing {
		t.Errorf("decided not to be recorded: %v, passed on %q", s.Recording(), passOn)
	}
}

// The ratio decides about those that the allowance has nothing for, and not by ids that they may have picked.
func TestAskingDoesNotTakeFromTheRatio(t *testing.T) {
	c := collector(t, "grpc")
	tr := tracer(t, spans.Options{Endpoint: c.URL, Protocol: spans.ProtocolGRPC, Ratio: 0.25, QueueMax: 1})
	recorded := 0
	for range 4000 {
		if s, _ := tr.Start("a", spans.Server, time.Now(), "00-00000000000000010000000000000001-b7ad6b7169203331-01", nil); s.Recording() {
			recorded++
		}
	}
	if recorded < 800 || recorded > 1200 {
		t.Errorf("%d of 4000 are recorded", recorded)
	}
}

// Options that can't be used are errors, with the key in them.
func TestOptionsThatAreWrong(t *testing.T) {
	for _, o := range []spans.Options{
		{Endpoint: "127.0.0.1:4317"}, {Endpoint: "https://127.0.0.1:4317", CA: "/nowhere/ca.pem"}, {Endpoint: "https://127.0.0.1:4317", CA: "tracer_test.go"},
	} {
		if tr, err := spans.New(o); err == nil {
			t.Errorf("%+v is taken", o)
			shut(t, tr)
		} else if fmt.Sprint(err) == "" {
			t.Error("it says nothing")
		}
	}
}

// BenchmarkRequest records what an edge does of one request, and has it exported to a collector that forgets it.
func BenchmarkRequest(b *testing.B) {
	for _, protocol := range []string{spans.ProtocolGRPC, spans.ProtocolHTTP} {
		b.Run(protocol, func(b *testing.B) {
			c := collector(b, protocol)
			c.Set(otlp.Forgets)
			tr := tracer(b, spans.Options{Endpoint: c.URL, Protocol: protocol})
			b.ReportAllocs()
			for b.Loop() {
				at := time.Now()
				root, _ := tr.Start("POST /v1/chat/completions", spans.Server, at, "", nil)
				for _, name := range []string{"admit", "dispatch"} {
					s := root.Child(name, spans.Internal, at, spans.Text("iop.provider", "p1"), spans.Text("iop.node", "n1"), spans.Int("iop.lease", 4711), spans.Int("iop.generation", 3),
						spans.Int("iop.attempt", 1), spans.Text("iop.request", "req_1"), spans.Text("gen_ai.request.model", "m"))
					s.Set(spans.Text("iop.dispatched", "true"))
					s.End(at)
				}
				root.Set(spans.Text("iop.request", "req_1"), spans.Text("iop.outcome", "ok"), spans.Text("http.route", "/v1/chat/completions"), spans.Text("gen_ai.operation.name", "chat"))
				root.Event("first byte", at)
				root.End(at)
			}
			n := tr.Counts()
			b.ReportMetric(float64(n.Dropped)/float64(b.N), "dropped/op")
		})
	}
}

// await waits until a fact is there, and fails the test if it does not come.
func await(t *testing.T, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !fact(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("after 30s still not")
		}
	}
}
