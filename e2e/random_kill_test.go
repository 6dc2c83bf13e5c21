package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/fsm"
)

// TestSigkillAtRandomMoments: under load, with clients that come and go, the edge is killed again and again. After each
// kill the invariants of its directory hold; the backend never gets more than its capacity; in the end nothing is held.
func TestSigkillAtRandomMoments(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Tokens: 4, Pace: time.Millisecond}})
	l := shared(b, 3)
	l.throttled, l.reattach = true, 1_000_000_000
	w := newWorld(t, l)
	crowd := newCrowd(w, r.Uint64(), 12)
	for round := range rounds(8, 60) {
		w.awaitLink("n1")
		answered := crowd.answered.Load()
		await(t, "clients get answers", func() bool { return crowd.answered.Load() >= answered+10 })
		time.Sleep(time.Duration(r.IntN(30_000)) * time.Microsecond) // the random moment
		w.edge.kill()
		nothingLost(t, b, inspect(t, w.dataDir()))
		w.restartEdge()
		crowd.address.Store(&w.edge.openai)
		// A fresh noded, whose reconnects have not slowed down yet; every other one dies with its runs.
		if round%2 == 0 {
			w.nodes["n1"].kill()
			w.startNode("n1")
		}
	}
	crowd.stop()
	w.awaitLink("n1")
	w.awaitPending(0)
	w.awaitIdle()
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("the backend got more than its capacity: %+v", s)
	}
	t.Logf("%d answers, %d refusals or losses", crowd.answered.Load(), crowd.failed.Load())
}

// nothingLost checks what a killed edge left against the backend: each request that it ever got was admitted on disk
// before, and each that it still works on is held.
func nothingLost(t *testing.T, b *backend.Backend, m *fsm.Machine) {
	t.Helper()
	got, held := b.Stats(), len(m.Leases())
	if granted := m.Snapshot().Granted; granted < uint64(got.Total) {
		t.Errorf("the log has %d admissions, the backend got %d requests", granted, got.Total)
	}
	if got.Current > held {
		t.Errorf("the log holds %d leases, the backend works on %d requests", held, got.Current)
	}
}

// crowd is a number of clients that ask again and again, and sometimes leave.
type crowd struct {
	address          atomic.Pointer[string]
	answered, failed atomic.Int64
	cancel           context.CancelFunc
	wait             sync.WaitGroup
}

func newCrowd(w *world, seed uint64, clients int) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{cancel: cancel}
	c.address.Store(&w.edge.openai)
	for i := range clients {
		c.wait.Go(func() { c.client(ctx, rand.New(rand.NewPCG(seed, uint64(i))), i) })
	}
	w.t.Cleanup(c.stop)
	return c
}

func (c *crowd) stop() {
	c.cancel()
	c.wait.Wait()
}

func (c *crowd) client(ctx context.Context, r *rand.Rand, who int) {
	for n := 0; ctx.Err() == nil; n++ {
		a := ask{
			tag: fmt.Sprintf("c%d-%d", who, n), model: []string{"m", "ornith:35b", "ornith-fast"}[r.IntN(3)],
			stream: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 {
			a.key = a.tag
		}
		patient, leave := context.WithCancel(ctx)
		if r.IntN(4) == 0 {
			time.AfterFunc(time.Duration(r.IntN(20_000))*time.Microsecond, leave)
		}
		got := call(patient, *c.address.Load(), a)
		leave()
		if got.status == 200 && got.clean {
			c.answered.Add(1)
			continue
		}
		c.failed.Add(1)
		time.Sleep(time.Duration(1+r.IntN(20)) * time.Millisecond) // a client's own back-off
	}
}

// TestCancelRacesStart: clients that leave at the very moment of their grant leave neither a busy nor a lost slot.
func TestCancelRacesStart(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{Limit: 2})
	w := newWorld(t, shared(b, 2))
	var all sync.WaitGroup
	for i := range rounds(300, 5000) {
		delay := time.Duration(r.IntN(4000)) * time.Microsecond
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), delay)
			defer cancel()
			call(ctx, w.edge.openai, ask{tag: fmt.Sprint("racer", i), stream: i%2 == 0})
		})
		if i%20 == 19 {
			all.Wait()
		}
	}
	all.Wait()
	w.awaitIdle()
	for i := range 4 {
		w.want(200, ask{tag: fmt.Sprint("after", i)})
	}
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("backend %+v", s)
	}
	w.awaitIdle()
}
