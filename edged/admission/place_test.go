package admission_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"iop/fsm"
)

// line is what clients of one slot saw: who was served after whom.
type line struct {
	mu     sync.Mutex
	served []string
}

func (l *line) serve(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = append(l.served, id)
}

// Sessions end at any moment, now and then before the edge hears what was granted last, with leases that stay counted or go
// back at once. However that crosses, all are served in the order in which they came.
func TestNobodyLosesHisPlaceHoweverSessionsEnd(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { placesHold(t, seed) })
	}
}

func placesHold(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	c := withGrace(pool(64, 1))
	c.Pool.QueueTimeout, c.Pool.ReattachWindow, c.Pool.StartupGrace = 0, 60*fsm.Second, 60*fsm.Second
	w := newWorld(t, seed+1, c)
	if seed%2 == 0 { // a link of the node to another edge keeps leases counted
		w.do(func() {
			other := w.apply(0, &fsm.OpenSession{Edge: "other", Nonce: 7}).Session
			w.apply(other, &fsm.RegisterNode{Node: "n", Instance: 1})
		})
	}
	free := w.occupy()
	l := &line{}
	var ends []<-chan error
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("client", i))
		ends = append(ends, w.comeInLine(want[i], l))
	}
	free()
	for range 6 {
		time.Sleep(time.Duration(rnd.IntN(4000)) * time.Microsecond)
		deaf := rnd.IntN(2) == 0
		w.do(func() { w.deaf = deaf })
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
		w.do(func() {
			w.cease()
			w.deaf = false
			w.adm.Detach()
		})
		time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
		w.do(w.open)
		time.Sleep(10 * time.Millisecond) // a node takes longer to come back than an edge to say who waits
		w.do(func() { w.register(1) })
	}
	for i, done := range ends {
		if err := <-done; err != nil {
			t.Errorf("seed %d: %s: %v", seed, want[i], err)
		}
	}
	if !slices.Equal(l.served, want) {
		t.Errorf("seed %d: served in the order %v", seed, l.served)
	}
	w.end()
}

// comeInLine begins a request. Its run ends as one that was not run if its link is gone when it begins.
func (w *world) comeInLine(id string, l *line) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- w.adm.Run(context.Background(), req(id), &client{dispatch: func(_ context.Context, g fsm.Grant) (fsm.Reason, bool) {
			ready := false
			w.do(func() { ready = w.linked(g.Generation) })
			if !ready {
				return fsm.ReasonNotRun, true
			}
			l.serve(id)
			time.Sleep(2 * time.Millisecond)
			return fsm.ReasonDone, false
		}})
	}()
	synctest.Wait()
	time.Sleep(2 * time.Millisecond)
	return done
}

// linked tells whether a link of the node is ready; between two entries.
func (w *world) linked(g fsm.Generation) bool {
	for _, n := range w.machine.Image().Nodes {
		for _, l := range n.Links {
			if l.Generation == g && l.State == fsm.LinkReady {
				return true
			}
		}
	}
	return false
}
