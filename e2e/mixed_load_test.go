package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestMixedLoadLeavesNothing: 10,000 requests for chat, responses and messages, streamed or not, a third of which their
// clients leave at any moment: afterwards every counter is 0, the log has as many returns as grants, and neither
// goroutines nor memory have grown since the first of them.
func TestMixedLoadLeavesNothing(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Keep: -1, Limit: 12, Default: backend.Plan{Usage: true, Pace: 200 * time.Microsecond}})
	l := shared(b, 12)
	l.log, l.keepalive = "info", 20*time.Millisecond
	w := newWorld(t, l)
	mixed(t, w, r.Uint64(), 2_500) // what is made once, such as pools, is made now
	w.awaitIdle()
	daemons := []*process{w.edge.process, w.nodes["n1"]}
	goroutines, before := w.metric("go_goroutines"), []int{anonymous(daemons[0]), anonymous(daemons[1])}
	mixed(t, w, r.Uint64(), rounds(7_500, 50_000))
	w.awaitIdle()
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("backend %+v", s)
	}
	await(t, fmt.Sprintf("edged has about %v goroutines again", goroutines), func() bool { return w.metric("go_goroutines") <= goroutines+16 })
	for i, p := range daemons {
		if now := anonymous(p); before[i] > 0 && now > before[i]+32<<20 {
			t.Errorf("%s had %d bytes after 2,500 requests, and %d in the end", p.name, before[i], now)
		} else {
			t.Logf("%s: %d bytes, then %d", p.name, before[i], now)
		}
	}
	if granted, returned := w.metric("iop_leases_granted_total"), w.metric("iop_leases_returned_total"); granted != returned || granted == 0 {
		t.Errorf("granted %v, returned %v", granted, returned)
	}
}

// mixed sends n requests, 24 at a time; 12 of these have a slot. Those whose client stays must be answered.
func mixed(t *testing.T, w *world, seed uint64, n int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 24, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var left, aborted atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for k := range uint64(24) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, k))
			for left.Add(-1) >= 0 && !t.Failed() {
				a, stays := mixedAsk(r), 2*patience
				leaves := r.IntN(3) == 0
				if leaves {
					stays = time.Duration(r.IntN(12_000)) * time.Microsecond
				}
				ctx, leave := context.WithTimeout(context.Background(), stays)
				status, body, err := quick(ctx, client, w.edge.openai, a)
				leave()
				switch {
				case err != nil && leaves:
					aborted.Add(1)
				case err != nil || status != 200 || !strings.Contains(body, " 3"):
					t.Errorf("%s: %d %v %.300s", a.path, status, err, body)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d requests, %d of them left by their clients", n, aborted.Load())
}

func mixedAsk(r *rand.Rand) ask {
	a := ask{stream: r.IntN(2) == 0}
	switch r.IntN(3) {
	case 0:
		a.path = "/v1/responses"
		a.body = fmt.Appendf(nil, `{"model":"m","input":"hello","stream":%v,"store":%v}`, a.stream, r.IntN(4) == 0)
	case 1:
		a.path = "/v1/messages"
		a.body = fmt.Appendf(nil, `{"model":"m","max_tokens":50,"stream":%v,"messages":[{"role":"user","content":"hello"}]}`, a.stream)
	}
	return a
}

// quick asks over a kept connection.
func quick(ctx context.Context, client *http.Client, address string, a ask) (int, string, error) {
	r, err := a.request(ctx, address)
	if err != nil {
		return 0, "", err
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}
