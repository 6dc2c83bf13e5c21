package noded

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// moody is a backend whose answers have the status that is set.
func moody(t *testing.T, status *atomic.Int64) string {
	return backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(int(status.Load()))
		}
		_, _ = io.WriteString(w, "{}")
	})
}

// A backend that fails fast must not look like the least loaded one and attract everything.
func TestABackendThatFailsFastIsLeftAlone(t *testing.T) {
	var status atomic.Int64
	status.Store(500)
	n := newNode(t)
	n.configure(1, one("p", "openai_compat", moody(t, &status)+"/v1", nil))
	for range 4 {
		n.run("p")
	}
	if len(n.reported) != 0 {
		t.Fatalf("reported after four failures: %+v", <-n.reported)
	}
	n.run("p")
	if c := n.wantReported("p", true); !strings.Contains(c.cause, "5 times in a row: status 500") {
		t.Errorf("the cause is %q", c.cause)
	}
	n.wantReported("p", false) // after the pause, on trial
	n.run("p")
	if c := n.wantReported("p", true); !strings.Contains(c.cause, "fails at once") {
		t.Errorf("one failure on trial was not enough: %q", c.cause)
	}
	n.wantReported("p", false)
	status.Store(200)
	n.run("p") // the trial is over
	status.Store(500)
	for range 4 {
		n.run("p")
	}
	if len(n.reported) != 0 {
		t.Errorf("reported although the trial was over: %+v", <-n.reported)
	}
}

// What a request is itself to blame for, and what says nothing of the backend, counts neither way.
func TestOnlyFailuresOfTheBackendCount(t *testing.T) {
	var status atomic.Int64
	n := newNode(t)
	n.configure(1, one("p", "openai_compat", moody(t, &status)+"/v1", nil))
	for _, code := range []int64{400, 401, 404, 413, 422, 429, 501} {
		status.Store(code)
		for range 6 {
			n.run("p")
		}
	}
	for range 3 { // each success begins the count anew
		status.Store(502)
		for range 4 {
			n.run("p")
		}
		status.Store(200)
		n.run("p")
	}
	if len(n.reported) != 0 {
		t.Fatalf("reported %+v", <-n.reported)
	}
	for _, code := range []int64{500, 400, 503, 404, 502, 504, 500} { // those in between don't hide them
		status.Store(code)
		n.run("p")
	}
	n.wantReported("p", true)
}

func TestAConnectionThatBreaksAtOnceIsAFailure(t *testing.T) {
	n := newNode(t)
	n.configure(1, one("p", "openai_compat", backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	})+"/v1", nil))
	for range 5 {
		_, end := n.run("p")
		if end.Code != "backend_broke" {
			t.Fatalf("end %+v", end)
		}
	}
	n.wantReported("p", true)
}

// A health check that names no path asks where servers of that type answer.
func TestTheTypeKnowsWhereItsHealthIs(t *testing.T) {
	for kind, c := range map[string]struct{ base, path string }{
		"vllm": {"/v1", "/health"}, "llamacpp": {"/v1", "/health"}, "mlx": {"/v1", "/health"}, "lmstudio": {"/v1", "/v1/models"},
		"lemonade": {"/api/v1", "/api/v1/health"}, "openai_compat": {"/x/v1", "/x/v1/models"},
	} {
		t.Run(kind, func(t *testing.T) {
			asked := make(chan string, 100)
			base := backendWith(t, func(w http.ResponseWriter, r *http.Request) {
				select {
				case asked <- r.URL.Path:
				default:
				}
			})
			n := newNode(t)
			n.configure(1, one("p", kind, base+c.base, checked("")))
			if got := <-asked; got != c.path {
				t.Errorf("asked %s, want %s", got, c.path)
			}
		})
	}
}

func TestLookAsksTheBackendOnceASecond(t *testing.T) {
	var asked atomic.Int64
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/v1/models" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	})
	n := newNode(t)
	n.configure(1, one("p", "mlx", base+"/v1", nil))
	if asked.Load() != 0 {
		t.Fatal("the backend was asked while nobody looked")
	}
	for range 20 {
		if s := n.Look(t.Context(), "p"); s.Error != "" || len(s.Models) != 1 || s.Models[0] != "m" {
			t.Fatalf("status %+v", s)
		}
	}
	if got := asked.Load(); got > 10 {
		t.Errorf("the backend was asked %d times for 20 looks", got)
	}
	if s := n.Look(t.Context(), "nobody"); !strings.Contains(s.Error, "no provider nobody") {
		t.Errorf("status %+v", s)
	}
}

// Two providers on one adapter have slots of their own: the gate of one does not count the other's runs.
func TestProvidersOnOneAdapterHaveTheirOwnSlots(t *testing.T) {
	hold := make(chan struct{})
	base := backendWith(t, func(http.ResponseWriter, *http.Request) { <-hold })
	n := newNode(t)
	p := one("a", "openai_compat", base+"/v1", func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) { p.Capacity = 1 })
	p.Providers = append(p.Providers, &nodepb.ProviderConfig{Id: "b", Type: "openai_compat", Adapter: "a", Capacity: 1, Enabled: true})
	n.configure(1, p)
	ends := make(chan edgelink.End, 2)
	on := func(provider string) edgelink.End {
		r := chatOn("a")
		r.Provider = provider
		return n.Run(t.Context(), r, &reply{})
	}
	for _, provider := range []string{"a", "b"} {
		go func() { ends <- on(provider) }()
		for n.current.Load().gates[provider].InFlight() == 0 {
			n.runNothing()
		}
	}
	for _, provider := range []string{"a", "b"} {
		wantEnd(t, on(provider), edgelink.DispatchedNo, "concurrency")
	}
	close(hold)
	for range 2 {
		wantEnd(t, <-ends, edgelink.DispatchedYes, "")
	}
}

// One hung backend must not slow others: its probe is given up by a clock of its own, and it is degraded.
func TestAHungHealthCheckIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	hanging := backendWith(t, func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	n := newNode(t)
	n.configure(1, one("hung", "vllm", hanging, checked("")))
	if c := n.wantReported("hung", true); !strings.Contains(c.cause, "backend_timeout") {
		t.Errorf("the cause is %q", c.cause)
	}
}
