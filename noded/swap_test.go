package noded

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// 200 configurations in a row while runs go on, every second one with a new adapter: no run is aborted, and in the end only
// the adapter of the last configuration is open. (That no goroutine stays is TestMain's to see.)
func TestSwapsUnderLoadAbortNothingAndLeaveNothing(t *testing.T) {
	var arrived atomic.Int64
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "whole")
	})
	n := newNode(t)
	n.configure(1, one("p", "vllm", base, func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) { p.Capacity = 5 }))
	stations := []*station{n.current.Load().places["p"].station}
	stop := make(chan struct{})
	var runners sync.WaitGroup
	var runs atomic.Int64
	for range 4 {
		runners.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, end := n.run("p")
				runs.Add(1)
				if end.Code != "" || end.Dispatched != edgelink.DispatchedYes || a.body.String() != "whole" {
					t.Errorf("run %d: dispatched %s, code %q (%s), body %q", runs.Load(), end.Dispatched, end.Code, end.Message, a.body.String())
					return
				}
			}
		})
	}
	for i := range 200 {
		before := n.current.Load().places["p"].station
		n.configure(uint64(i+2), one("p", "vllm", fmt.Sprintf("%s/v%d", base, i/2), func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) {
			p.Capacity = uint32(5 + i%3)
		}))
		s := n.current.Load().places["p"].station
		if same := i%2 == 1; (s == before) != same {
			t.Fatalf("configuration %d: adapter kept %v, want %v", i+2, s == before, same)
		}
		if s != before {
			stations = append(stations, s)
		}
		for had := runs.Load(); runs.Load() == had && !t.Failed(); { // let some run meet each configuration
			_, _ = n.run("p")
			runs.Add(1)
		}
	}
	close(stop)
	runners.Wait()
	if got, want := arrived.Load(), runs.Load(); got != want {
		t.Errorf("%d runs reached the backend, %d were made: lost or doubled", got, want)
	}
	for i, s := range stations { // the last user closes
		want := int64(0)
		if i == len(stations)-1 {
			want = 1
		}
		if u := s.users.Load(); u != want {
			t.Errorf("adapter %d of %d has %d users, want %d", i, len(stations), u, want)
		}
	}
	if len(stations) < 100 {
		t.Errorf("only %d adapters were built", len(stations))
	}
	if g := n.current.Load().gates["p"]; g.InFlight() != 0 || g.Refused() != 0 || len(n.current.Load().gates) != 1 {
		t.Errorf("in flight %d, refused %d, %d gates", g.InFlight(), g.Refused(), len(n.current.Load().gates))
	}
}

// What still runs above a lowered capacity of one provider must not take the place of another's on the same adapter.
func TestALoweredProviderDoesNotCrowdOutItsNeighbour(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{}, 10)
	base := backendWith(t, func(w http.ResponseWriter, _ *http.Request) {
		inside <- struct{}{}
		<-release
		_, _ = io.WriteString(w, "ok")
	})
	two := func(first uint32) *nodepb.NodeConfigPayload {
		p := one("a", "vllm", base, func(_ *nodepb.AdapterConfig, p *nodepb.ProviderConfig) { p.Id, p.Capacity = "first", first })
		p.Providers = append(p.Providers, &nodepb.ProviderConfig{Id: "second", Type: "vllm", Adapter: "a", Models: []string{"m"}, Capacity: 2})
		return p
	}
	n := newNode(t)
	n.configure(1, two(4))
	ends := make(chan edgelink.End, 6)
	start := func(provider string) {
		r := chatOn("a")
		r.Provider = provider
		go func() { ends <- n.Run(t.Context(), r, &reply{}) }()
		<-inside
	}
	for range 4 {
		start("first")
	}
	n.configure(2, two(1))
	for _, g := range n.current.Load().gates { // as if its grace had passed
		g.SetCapacity(g.Capacity()+1, 0)
		g.SetCapacity(g.Capacity()-1, 0)
	}
	start("second")
	start("second")
	r := chatOn("a")
	r.Provider = "first"
	wantEnd(t, n.Run(t.Context(), r, &reply{}), edgelink.DispatchedNo, codeConcurrency)
	close(release)
	for range 6 {
		wantEnd(t, <-ends, edgelink.DispatchedYes, "")
	}
}
