package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
)

// rush is constant traffic on a cluster, whatever happens to it: clients that stream, clients that want short answers,
// more of both than there are slots, and an operator who changes the configuration all the time. Each client asks its own
// replica, goes to the next one when that does not serve it, and does not give up. Everything that they saw is kept
// (cluster_memory_test.go), and end holds it against what was done to the cluster and what the backends got.
//
// The layout is rushLayout's: the model m on two providers of two nodes, which the load is on; line, one slot, and probe,
// which nothing else uses, are for the test.
type rush struct {
	c         *cluster
	m         [2]*backend.Backend // of p1 and p2
	line      *backend.Backend
	probe     *backend.Backend
	plan      backend.Plan
	cancel    context.CancelFunc
	ctx       context.Context // ends the tries of who does not give up
	stopping  atomic.Bool
	wait      sync.WaitGroup
	began     time.Time
	mu        sync.Mutex
	jobs      []*job
	faults    []*fault
	refreshed map[int]int // answers of refreshes by status; 0 = none came
	answered  atomic.Int64
}

// slots of the two providers of the model m.
const (
	slots1 = 4
	slots2 = 3
)

// rushLayout is the system that load works on.
func rushLayout(m1, m2, line, probe *backend.Backend) layout {
	return layout{
		providers: []provider{
			{id: "p1", node: "n1", url: m1.URL(), capacity: slots1},
			{id: "p2", node: "n2", url: m2.URL(), capacity: slots2},
			{id: "line", node: "n1", url: line.URL(), capacity: 1},
			{id: "probe", node: "n2", url: probe.URL(), capacity: 8},
		},
		models: map[string][]string{"m": {"p1", "p2"}, "line": {"line"}, "probe": {"probe"}},
		queue:  500, grace: patience, reattach: 12 * time.Second, fence: 5 * time.Second, log: "info",
		heartbeat: time.Second, missed: 4,
		// Nodes are told where the replicas are, and would go around their proxies.
		edge: map[string]any{"advertise": map[string]any{"node": "127.0.0.1:1"}},
	}
}

// newRush starts three replicas, two nodes and the traffic, and returns when it flows through each replica.
func newRush(t testing.TB, prepared ...func(*cluster)) *rush {
	t.Helper()
	x := newQuietRush(t, func(l layout) *cluster { return newCluster(t, l, 3, prepared...) })
	x.flow()
	return x
}

// newQuietRush is newRush on a cluster that start makes of the layout; flow begins the traffic.
func newQuietRush(t testing.TB, start func(layout) *cluster) *rush {
	t.Helper()
	plan := backend.Plan{Tokens: 40, Pace: 30 * time.Millisecond, First: 10 * time.Millisecond}
	x := &rush{
		plan: plan, refreshed: map[int]int{}, began: time.Now(),
		m: [2]*backend.Backend{
			newBackend(t, backend.Options{Limit: slots1, Default: plan}), newBackend(t, backend.Options{Limit: slots2, Default: plan}),
		},
		line:  newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}}),
		probe: newBackend(t, backend.Options{Limit: 8}),
	}
	x.c = start(rushLayout(x.m[0], x.m[1], x.line, x.probe))
	x.ctx, x.cancel = context.WithCancel(context.Background())
	t.Cleanup(x.abandon)
	return x
}

// flow starts the clients; stop ends them.
func (x *rush) flow() {
	x.c.t.Helper()
	x.stopping.Store(false)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for k := range 12 {
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(k)))
		x.wait.Go(func() { x.client(own, k%3, fmt.Sprintf("%c%d-%d", 'a'+k, k%3, own.Uint32()), k < 6) })
	}
	x.wait.Go(x.operator)
	x.wait.Go(x.watchMachine)
	x.flows(12)
}

// flows waits until the clients of this load got n answers more.
func (x *rush) flows(n int64) {
	x.c.t.Helper()
	from := x.answered.Load()
	await(x.c.t, "the load flows", func() bool { return x.answered.Load() >= from+n || x.c.t.Failed() })
}

// stop ends the clients once each has what it asked for.
func (x *rush) stop() {
	x.c.t.Helper()
	x.stopping.Store(true)
	done := make(chan struct{})
	go func() { x.wait.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * patience):
		x.cancel()
		<-done
	}
}

// abandon ends the clients whatever they have.
func (x *rush) abandon() {
	x.stopping.Store(true)
	x.cancel()
	x.wait.Wait()
}

// watchMachine notes when the machine under the test stood still, which looks like every fault at once.
func (x *rush) watchMachine() {
	const each, still = 50 * time.Millisecond, time.Second
	for last := time.Now(); !x.stopping.Load(); {
		time.Sleep(each)
		now := time.Now()
		if now.Sub(last) > still {
			f := x.inflict(&fault{what: "the machine stood still", at: []int{0, 1, 2}, breaks: true, refuses: true, nodes: true})
			x.mu.Lock()
			f.from, f.to = last, now.Add(5*time.Second) // until all have found each other again
			x.mu.Unlock()
			x.c.t.Logf("the machine stood still for %v", now.Sub(last).Round(time.Millisecond))
		}
		last = now
	}
}

// client asks for one thing after the other.
func (x *rush) client(r *rand.Rand, home int, name string, streams bool) {
	for n := 0; !x.stopping.Load(); n++ {
		a := ask{tag: fmt.Sprint(name, "-", n), stream: streams}
		if r.IntN(2) == 0 {
			a.key = a.tag
		}
		leaves := time.Duration(0)
		if !streams && r.IntN(8) == 0 { // tries elsewhere if it takes long
			leaves = time.Duration(500+r.IntN(1500)) * time.Millisecond
		}
		x.serve(x.job(a), home, leaves)
		if x.ctx.Err() != nil {
			return
		}
	}
}

// serve tries until a job is done, at each replica in turn.
func (x *rush) serve(j *job, at int, leaves time.Duration) {
	for n := 0; x.ctx.Err() == nil; n++ {
		t := x.try(j, at, leaves)
		if t.whole() {
			x.answered.Add(1)
			return
		}
		at = (at + 1) % len(x.c.replicas)
		pause := time.Duration(20+min(n, 8)*20) * time.Millisecond
		select {
		case <-time.After(pause):
		case <-x.ctx.Done():
		}
	}
}

// operator changes the configuration again and again, through any replica: a slot less and a slot more.
func (x *rush) operator() {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; !x.stopping.Load(); n++ {
		i := n % len(x.c.replicas)
		l := x.c.layout.clone()
		l.providers[0].capacity = slots1 - n%2
		status := x.refresh(client, i, x.c.render(l, i))
		x.mu.Lock()
		x.refreshed[status]++
		x.mu.Unlock()
		time.Sleep(150 * time.Millisecond) // the rhythm of the load
	}
}

func (x *rush) refresh(client *http.Client, i int, file []byte) int {
	ctx, cancel := context.WithTimeout(x.ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+x.c.own(i, 9080)+"/refresh", bytes.NewReader(file))
	if err != nil {
		x.c.t.Error(err)
		return 0
	}
	res, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body) // cut off, it is not what it should be
	if !slices.Contains([]int{200, 409, 500, 502, 503, 504}, res.StatusCode) {
		x.c.t.Errorf("a refresh through %s was answered %s: %s", x.c.id(i), strconv.Itoa(res.StatusCode), body)
	}
	return res.StatusCode
}
