package noded

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/configs"
	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is the daemon's inside without links: what an edge asks is asked of its hands.
type node struct {
	*hands
	t        *testing.T
	reported chan condition
	log      *logBuffer
}

// logBuffer is a log that a test may read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newNode(t *testing.T) *node {
	t.Helper()
	quick := rhythm{refusals: 3, failures: 5, failedWithin: time.Minute, pauseMin: time.Millisecond, pauseMax: 4 * time.Millisecond, failedChecks: 2, probeMin: time.Millisecond, probeMax: 4 * time.Millisecond, probeTimeout: time.Second}
	n := &node{t: t, reported: make(chan condition, 100), log: &logBuffer{}}
	logger := slog.New(slog.NewTextHandler(n.log, nil))
	m := newMonitor(logger, func(c condition) { n.reported <- c })
	env := func(name string) (string, bool) { return "key-from-env", name == "FROM_ENV" }
	n.hands = newHands(builder{keys: map[string]configs.Secret{"FROM_FILE": "key-from-file"}, env: env, rhythm: quick}, m, logger)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done; n.close() })
	return n
}

// configure applies a payload that must be accepted.
func (n *node) configure(revision uint64, p *nodepb.NodeConfigPayload) {
	n.t.Helper()
	if err := n.Configure(n.t.Context(), revision, p); err != nil {
		n.t.Fatal(err)
	}
}

// run runs one chat completion on the adapter and provider of that name.
func (n *node) run(name string) (*reply, edgelink.End) {
	var a reply
	end := n.Run(n.t.Context(), chatOn(name), &a)
	return &a, end
}

func chatOn(name string) *edgelink.Run {
	return &edgelink.Run{
		Provider: name,
		Adapter:  name,
		Kind:     nodepb.KindTunnel,
		Method:   "POST",
		Path:     "/v1/chat/completions",
		Header:   http.Header{"Content-Type": {"application/json"}},
		Body:     []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`),
	}
}

// wantReported waits for a change of a provider's condition.
func (n *node) wantReported(provider string, degraded bool) condition {
	n.t.Helper()
	select {
	case c := <-n.reported:
		if c.provider != provider || c.degraded != degraded {
			n.t.Fatalf("reported %+v, want %s degraded=%v", c, provider, degraded)
		}
		return c
	case <-time.After(10 * time.Second):
		n.t.Fatalf("nothing was reported; want %s degraded=%v", provider, degraded)
	}
	return condition{}
}

// reply is an Answer that keeps what comes.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
	onHead func() // may be nil
}

func (r *reply) Head(status int, h http.Header) error {
	r.status, r.header = status, h
	if r.onHead != nil {
		r.onHead()
	}
	return nil
}

func (r *reply) Data(p []byte) error { r.body.Write(p); return nil }

// one is the payload of one adapter and one provider, both of that name.
func one(name, kind, base string, change func(*nodepb.AdapterConfig, *nodepb.ProviderConfig)) *nodepb.NodeConfigPayload {
	a := &nodepb.AdapterConfig{Id: name, Type: kind, BaseUrl: base}
	p := &nodepb.ProviderConfig{Id: name, Type: kind, Adapter: name, Models: []string{"m"}, Capacity: 4, Enabled: true}
	if change != nil {
		change(a, p)
	}
	return &nodepb.NodeConfigPayload{Adapters: []*nodepb.AdapterConfig{a}, Providers: []*nodepb.ProviderConfig{p}}
}

func join(payloads ...*nodepb.NodeConfigPayload) *nodepb.NodeConfigPayload {
	all := &nodepb.NodeConfigPayload{}
	for _, p := range payloads {
		all.Adapters = append(all.Adapters, p.GetAdapters()...)
		all.Providers = append(all.Providers, p.GetProviders()...)
	}
	return all
}

func wantEnd(t *testing.T, got edgelink.End, d edgelink.Dispatched, code string) {
	t.Helper()
	if got.Dispatched != d || got.Code != code {
		t.Fatalf("end is dispatched=%s code=%q (%s), want dispatched=%s code=%q", got.Dispatched, got.Code, got.Message, d, code)
	}
}

// backendWith serves requests with h.
func backendWith(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// address reserves a port that can be listened on later; until then it refuses.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number is wanted
	return l.Addr().String()
}

// listenAt serves 200 at an address.
func listenAt(t *testing.T, address string) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	s.Listener.Close() //nolint:errcheck // replaced
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func TestEveryTypeIsServed(t *testing.T) {
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	for _, kind := range []string{"openai_compat", "vllm", "llamacpp", "mlx", "lemonade", "lmstudio", "seulgivibe_claude", "seulgivibe_openai"} {
		n := newNode(t)
		n.configure(1, one("p", kind, base, nil))
		a, end := n.run("p")
		wantEnd(t, end, edgelink.DispatchedYes, "")
		if a.body.String() != "/v1/chat/completions" {
			t.Errorf("%s: the backend got %s", kind, a.body.String())
		}
	}
	n := newNode(t)
	n.configure(1, one("p", "demo", "", func(a *nodepb.AdapterConfig, _ *nodepb.ProviderConfig) {
		a.Settings = map[string]string{"words": "7", "word_interval_ms": "0", "first_token_ms": "0", "of a newer edge": "x"}
	}))
	a, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedYes, "")
	if !strings.Contains(a.body.String(), `"completion_tokens":7`) {
		t.Errorf("the demo answers %s", a.body.String())
	}
}

func TestKeysComeFromTheFileThenTheEnvironment(t *testing.T) {
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	for name, want := range map[string]string{"FROM_FILE": "Bearer key-from-file", "FROM_ENV": "Bearer key-from-env", "": ""} {
		n := newNode(t)
		n.configure(1, one("p", "vllm", base, func(a *nodepb.AdapterConfig, _ *nodepb.ProviderConfig) { a.ApiKeyEnv = name }))
		if a, _ := n.run("p"); a.body.String() != want {
			t.Errorf("api_key_env %q: the backend got %q, want %q", name, a.body.String(), want)
		}
		if strings.Contains(n.log.String(), "key-from") {
			t.Errorf("a key is in the log: %s", n.log)
		}
	}
}

// Who may change the configuration of an edge can't have the node send its own token to a backend of his, or give it to a
// command: what begins with IOP_ in noded's environment is noded's.
func TestNodedsOwnVariablesAreNoKeys(t *testing.T) {
	b := builder{
		keys: map[string]configs.Secret{"IOP_FROM_FILE": "named by whoever owns the node"},
		env:  func(name string) (string, bool) { return "value of " + name, true },
	}
	for _, name := range []string{"IOP_NODE_TOKEN", "iop_node_token", "IOP_JOIN_TOKEN"} {
		if p := b.plan(&nodepb.AdapterConfig{Id: "a", Type: "vllm", ApiKeyEnv: name}, nil); p.key != "" || p.broken == "" {
			t.Errorf("%s: key %q, broken %q", name, p.key, p.broken)
		}
	}
	for name, want := range map[string]string{"IOP_FROM_FILE": "named by whoever owns the node", "OTHER": "value of OTHER"} {
		if p := b.plan(&nodepb.AdapterConfig{Id: "a", Type: "vllm", ApiKeyEnv: name}, nil); p.key != want {
			t.Errorf("%s: key %q, want %q", name, p.key, want)
		}
	}
}

func TestAnAdapterThatCannotBeBuiltDoesNotStopTheOthers(t *testing.T) {
	good := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	for name, bad := range map[string]*nodepb.NodeConfigPayload{
		"no key": one("bad", "vllm", good, func(a *nodepb.AdapterConfig, _ *nodepb.ProviderConfig) { a.ApiKeyEnv = "MISSING_KEY" }),
		"no URL": one("bad", "vllm", "not a URL", nil),
		"cli":    one("bad", "cli", "", nil),
		"demo pace": one("bad", "demo", "", func(a *nodepb.AdapterConfig, _ *nodepb.ProviderConfig) {
			a.Settings = map[string]string{"words": "many"}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.configure(1, join(bad, one("good", "vllm", good, nil)))
			c := n.wantReported("bad", true)
			if !strings.Contains(c.cause, "adapter bad") {
				t.Errorf("the cause is %q", c.cause)
			}
			_, end := n.run("bad")
			wantEnd(t, end, edgelink.DispatchedNo, codeMisconfigured)
			_, end = n.run("good")
			wantEnd(t, end, edgelink.DispatchedYes, "")
		})
	}
}

func TestAConfigurationThatMakesNoSenseIsRefusedAndTheOldOneStays(t *testing.T) {
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, nil))
	for name, p := range map[string]*nodepb.NodeConfigPayload{
		"adapter twice": join(one("p", "vllm", base, nil), one("p", "vllm", base, nil)),
		"adapter gone":  {Providers: []*nodepb.ProviderConfig{{Id: "p", Adapter: "gone"}}},
		"nameless":      one("", "vllm", base, nil),
	} {
		if err := n.Configure(t.Context(), 2, p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedYes, "")
}

func TestRunsThatCannotBeginAreNotDispatched(t *testing.T) {
	n := newNode(t)
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, codeMisconfigured)
	n.configure(1, one("p", "demo", "", nil))
	r := chatOn("p")
	r.Kind = nodepb.KindRun
	wantEnd(t, n.Run(t.Context(), r, &reply{}), edgelink.DispatchedNo, codeUnsupported)
}

func TestTheGateRefusesAboveTheCapacity(t *testing.T) {
	release := make(chan struct{})
	inside := make(chan struct{}, 10)
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) {
		inside <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "ok")
	})
	two := func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) { p.Capacity = 2 }
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, two))
	ends := make(chan edgelink.End, 3)
	for range 2 {
		go func() { _, end := n.run("p"); ends <- end }()
		<-inside
	}
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, codeConcurrency)
	if !strings.Contains(n.log.String(), "gate refused") {
		t.Errorf("the refusal is not in the log")
	}
	// A new adapter does not forget the runs of the old one.
	n.configure(2, one("p", "vllm", base+"/v1", two))
	_, end = n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, codeConcurrency)
	n.configure(3, one("p", "vllm", base+"/v1", func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) { p.Capacity = 3 }))
	go func() { _, end := n.run("p"); ends <- end }()
	<-inside
	close(release)
	for range 3 {
		wantEnd(t, <-ends, edgelink.DispatchedYes, "")
	}
	if g := n.current.Load().gates["p"]; g.InFlight() != 0 || g.Refused() != 2 {
		t.Errorf("in flight %d, refused %d; want 0 and 2", g.InFlight(), g.Refused())
	}
}

func TestAnOldAdapterLivesUntilItsLastRunHasEnded(t *testing.T) {
	release := make(chan struct{})
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		if r.URL.Path != "/v1/quick" {
			<-release
		}
		_, _ = io.WriteString(w, "whole")
	})
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, nil))
	old := n.current.Load().places["p"].station
	begun := make(chan struct{})
	a := &reply{onHead: func() { close(begun) }}
	ended := make(chan edgelink.End)
	go func() { ended <- n.Run(t.Context(), chatOn("p"), a) }()
	<-begun
	n.configure(2, one("p", "vllm", base+"/v1", nil))
	if old.users.Load() != 1 {
		t.Errorf("the old adapter has %d users, want its run", old.users.Load())
	}
	quick := chatOn("p")
	quick.Path = "/v1/quick"
	wantEnd(t, n.Run(t.Context(), quick, &reply{}), edgelink.DispatchedYes, "")
	close(release)
	wantEnd(t, <-ended, edgelink.DispatchedYes, "")
	if a.body.String() != "whole" || old.users.Load() != 0 {
		t.Errorf("the run on the old adapter got %q; %d users are left", a.body.String(), old.users.Load())
	}
	n.configure(3, &nodepb.NodeConfigPayload{})
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, codeMisconfigured)
}

func TestWhatHasNotChangedIsKept(t *testing.T) {
	n := newNode(t)
	p := join(one("a", "vllm", "http://127.0.0.1:1", nil), one("b", "vllm", "http://127.0.0.1:2", nil))
	n.configure(1, p)
	before := n.current.Load()
	n.configure(1, p)
	if n.current.Load() != before {
		t.Error("the same configuration was built again")
	}
	n.configure(2, join(one("a", "vllm", "http://127.0.0.1:1", nil), one("b", "vllm", "http://127.0.0.1:3", nil)))
	after := n.current.Load()
	if after.places["a"] != before.places["a"] || after.watches["a"] != before.watches["a"] {
		t.Error("a was built again although nothing about it has changed")
	}
	if after.places["b"].station == before.places["b"].station || after.watches["b"] == before.watches["b"] {
		t.Error("b was kept although its address has changed")
	}
	if before.places["b"].station.users.Load() != 0 || before.places["a"].station.users.Load() != 1 {
		t.Error("users are miscounted")
	}
}

func TestConfigurationsAndRunsAtTheSameTime(t *testing.T) {
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if a, end := n.run("p"); end.Code != "" || a.body.String() != "ok" {
					t.Errorf("end is %+v", end)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 100 {
			n.configure(uint64(i+2), one("p", "vllm", base+strings.Repeat("/", i%2), nil))
		}
	})
	wg.Wait()
}

func TestABusyAnswerIsHandedOnAndNotDispatched(t *testing.T) {
	const loading = `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503); _, _ = io.WriteString(w, loading) })
	n := newNode(t)
	n.configure(1, one("p", "llamacpp", base, nil))
	a, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, "busy")
	if a.status != 503 || a.body.String() != loading {
		t.Errorf("handed on: %d %s", a.status, a.body.String())
	}
}

func TestTheTraceReachesTheBackend(t *testing.T) {
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header["Traceparent"]) })
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, nil))
	r := chatOn("p")
	r.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.Header.Set("Traceparent", "of the client")
	var a reply
	n.Run(t.Context(), r, &a)
	if a.body.String() != "["+r.Trace+"]" || r.Header.Get("Traceparent") != "of the client" {
		t.Errorf("the backend got %s", a.body.String())
	}
}
