package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"iop/e2e/backend"
)

// traffic is what goes on beside a refresh at the provider "side", which no test touches: a stream that is open from
// before the first refresh until after the last one, and a client that asks again and again. None of it may notice
// anything.
type traffic struct {
	w        *world
	backend  *backend.Backend
	through  *stream
	turn     sync.Mutex // held by the client during each request; pause takes it
	stopped  atomic.Bool
	answered atomic.Int64
	wait     sync.WaitGroup
}

// newBusyWorld is newWorld with traffic on a provider of a node: one of the layout's, or another.
func newBusyWorld(t testing.TB, l layout, node string) (*world, *traffic) {
	t.Helper()
	b := newBackend(t, backend.Options{Limit: 3})
	b.SetFor("through", backend.Plan{Tokens: 5, Hold: backend.AfterTokens, At: 2})
	l = l.clone()
	l.providers = append(l.providers, provider{id: "side", node: node, url: b.URL(), capacity: 3})
	l.models["side"] = []string{"side"}
	w := newWorld(t, l)
	x := &traffic{w: w, backend: b}
	x.start()
	return w, x
}

func (x *traffic) start() {
	x.through = x.w.open(ask{model: "side", tag: "through"})
	x.through.next()
	x.wait.Go(x.client)
	x.w.t.Cleanup(x.stop)
	x.awaitAnswers(2)
}

func (x *traffic) client() {
	address := x.w.edge.openai
	for n := 0; !x.stopped.Load(); n++ {
		x.turn.Lock()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		a := call(ctx, address, ask{model: "side", tag: fmt.Sprint("side", n), stream: n%2 == 0})
		cancel()
		x.turn.Unlock()
		if a.status != 200 || !a.clean || a.text() != " 1 2 3" {
			x.w.t.Errorf("the traffic noticed something: %s: status %d, clean %v, %v: %.300s", a.tag, a.status, a.clean, a.err, a.body)
			return
		}
		x.answered.Add(1)
		time.Sleep(4 * time.Millisecond) // so that two cores have something left for the test itself
	}
}

// awaitAnswers waits until the client got n answers more.
func (x *traffic) awaitAnswers(n int64) {
	x.w.t.Helper()
	from := x.answered.Load()
	await(x.w.t, "the traffic goes on", func() bool { return x.answered.Load() >= from+n })
}

// pause stops the client between two requests; the stream stays open. The result lets it go on.
func (x *traffic) pause() (resume func()) {
	x.w.t.Helper()
	x.turn.Lock()
	resume = sync.OnceFunc(x.turn.Unlock)
	x.w.t.Cleanup(resume) // before stop, if the test ends meanwhile
	await(x.w.t, "only the stream is in flight beside the test", func() bool { return x.w.provider("side").InFlight == 1 })
	return resume
}

func (x *traffic) stop() {
	x.stopped.Store(true)
	x.wait.Wait()
}

// end demands that the traffic still goes on, ends it, and wants the whole stream and nothing held.
func (x *traffic) end() {
	t := x.w.t
	t.Helper()
	x.awaitAnswers(2)
	x.stop()
	x.backend.LetAll()
	if all, clean := x.through.rest(); !clean || len(all) != 6 || all[5] != "[DONE]" {
		t.Errorf("the stream that was open all the time ended with %q, clean %v", all, clean)
	}
	x.w.awaitIdle()
	if s := x.backend.Stats(); s.Violations != 0 || s.Aborted != 0 {
		t.Errorf("the traffic's backend: %+v", s)
	}
}
