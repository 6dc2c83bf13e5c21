package admission_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

// begin runs a request beside the test; served gets its name when it is dispatched.
func (w *world) begin(id string, served chan<- string) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- w.adm.Run(context.Background(), req(id), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
			served <- id
			time.Sleep(2 * time.Millisecond)
			return fsm.ReasonDone, false
		}})
	}()
	synctest.Wait()
	time.Sleep(2 * time.Millisecond)
	return done
}

// A session ends under a run and waiters, and again: they are served in their order, before those that came in between,
// and the run's release finds its lease given back.
func TestWaitersKeepTheirPlacesInTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, withGrace(pool(16, 1)))
		free := w.occupy()
		served := make(chan string, 16)
		var ends []<-chan error
		var want []string
		for i := range 4 {
			want = append(want, fmt.Sprint("waiter", i))
			ends = append(ends, w.begin(want[i], served))
		}
		w.do(w.cease)
		ends = append(ends, w.begin("between", served))
		w.do(w.open)
		time.Sleep(5 * time.Millisecond)
		w.do(w.cease)
		ends = append(ends, w.begin("later", served))
		if len(served) > 0 {
			t.Fatalf("%s was served without a session", <-served)
		}
		w.do(w.renew)
		for _, done := range ends {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		want = append(want, "between", "later")
		var got []string
		for range want {
			got = append(got, <-served)
		}
		if !slices.Equal(got, want) {
			t.Errorf("served in the order %v", got)
		}
		free()
		w.end()
	})
}

func withGrace(c fsm.Config) fsm.Config {
	c.Pool.StartupGrace = fsm.Second
	return c
}

// Without a session a new request waits for one, but not for ever; one that has a place waits on.
func TestWithoutASessionANewRequestIsToldSoInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withGrace(pool(16, 1))
		c.Pool.QueueTimeout, c.Pool.ReattachWindow = 60*fsm.Second, 60*fsm.Second
		w := newWorld(t, 1, c)
		free := w.occupy()
		served := make(chan string, 4)
		old := w.begin("old", served)
		w.do(w.cease)
		fresh := w.begin("fresh", served)
		began := time.Now()
		if err := <-fresh; !errors.Is(err, admission.ErrNoLeader) || time.Since(began) < 9*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		w.do(w.renew)
		if err := <-old; err != nil {
			t.Error(err)
		}
		free()
		w.end()
	})
}

// The client of a waiter leaves while there is no session: its place is given up in the next one.
func TestLeavingBetweenSessions(t *testing.T) {
	for _, at := range []string{"waiting", "asking"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, withGrace(pool(16, 1)))
				free := w.occupy()
				ctx, leave := context.WithCancel(context.Background())
				done := make(chan error, 1)
				if at == "asking" {
					w.do(w.cease)
				}
				go func() { done <- w.adm.Run(ctx, req("b"), &client{}) }()
				time.Sleep(5 * time.Millisecond)
				if at == "waiting" {
					w.do(w.cease)
				}
				leave()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				w.do(w.renew)
				free()
				w.end()
			})
		})
	}
}

// A waiter is granted a slot in the moment its session ends. It is served before those that came after it, though they keep
// their places too, whatever became of its lease: it counts on behind its fence, or went back with the node's last link; the
// edge has not heard of it, or it has, and found the link gone.
func TestAGrantThatWentWithItsSession(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for _, heard := range []bool{true, false} {
			t.Run(fmt.Sprintf("lease kept=%v grant heard=%v", kept, heard), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { grantCrosses(t, kept, heard) })
			})
		}
	}
}

func grantCrosses(t *testing.T, kept, heard bool) {
	w := newWorld(t, 1, withGrace(pool(16, 1)))
	if kept { // a link of the node to another edge keeps the lease counted
		w.do(func() {
			other := w.apply(0, &fsm.OpenSession{Edge: "other", Nonce: 7}).Session
			w.apply(other, &fsm.RegisterNode{Node: "n", Instance: 1})
		})
	}
	free := w.occupy()
	served := make(chan string, 4)
	linkGone := make(chan struct{})
	first := make(chan error, 1)
	go func() {
		tries := 0
		first <- w.adm.Run(context.Background(), req("first"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
			if tries++; heard && tries == 1 {
				<-linkGone
				return fsm.ReasonNotRun, true
			}
			served <- "first"
			return fsm.ReasonDone, false
		}})
	}()
	time.Sleep(2 * time.Millisecond)
	second := w.begin("second", served)
	w.do(func() { w.deaf = !heard })
	free()
	time.Sleep(5 * time.Millisecond)
	w.do(func() {
		w.cease()
		w.deaf = false
		w.adm.Detach()
	})
	close(linkGone)
	time.Sleep(5 * time.Millisecond)
	third := w.begin("third", served)
	w.do(w.open)
	time.Sleep(20 * time.Millisecond)
	if len(served) > 0 {
		t.Fatalf("%s was served over a link that is gone", <-served)
	}
	w.do(func() { w.register(1) })
	for _, done := range []<-chan error{first, second, third} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"first", "second", "third"} {
		if got := <-served; got != want {
			t.Errorf("served %s, want %s", got, want)
		}
	}
	w.end()
}

// The log has no leader: a new request is told at once, one that had a place asks again.
func TestNoLeaderIsToldToNewRequestsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, withGrace(pool(16, 1)))
		free := w.occupy()
		served := make(chan string, 4)
		old := w.begin("old", served)
		w.do(w.cease)
		w.change(func() {
			w.fail = func(c fsm.Command) error {
				if _, ok := c.(*fsm.Admit); ok {
					return admission.ErrNoLeader
				}
				return nil
			}
		})
		w.do(w.renew)
		if err := <-w.begin("fresh", served); !errors.Is(err, admission.ErrNoLeader) {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		w.change(func() { w.fail = func(fsm.Command) error { return nil } })
		if err := <-old; err != nil {
			t.Error(err)
		}
		free()
		w.end()
	})
}

func TestNoFurtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		served := make(chan string, 4)
		waiter := w.begin("waiter", served)
		w.do(w.cease)
		asking := w.begin("asking", served)
		w.adm.Abandon()
		for _, done := range []<-chan error{waiter, asking} {
			if err := <-done; !errors.Is(err, admission.ErrSessionEnded) {
				t.Error(err)
			}
		}
		free() // its release finds the session ended, and is over
		if err := w.adm.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		close(w.stop)
		<-w.done
	})
}

// Sessions end at any moment, while clients come, leave, and send the same request twice. Nothing is left, and every
// lease goes back once (world.end).
func TestSessionsEndAtAnyMoment(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := withGrace(pool(64, 2, 1))
				c.Pool.QueueTimeout, c.Pool.ReattachWindow = 60*fsm.Second, 60*fsm.Second
				w := newWorld(t, seed, c)
				rnd := rand.New(rand.NewPCG(seed, 99))
				var wg sync.WaitGroup
				for i := range 80 {
					id := fmt.Sprint("r", i-rnd.IntN(2)*rnd.IntN(2)) // now and then one that is there already
					patience, lasts, requeues := time.Duration(rnd.Int64N(int64(40*time.Millisecond))), time.Duration(rnd.Int64N(int64(6*time.Millisecond))), rnd.IntN(8) == 0
					if rnd.IntN(3) > 0 {
						patience = time.Minute
					}
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(context.Background(), patience)
						defer cancel()
						err := w.adm.Run(ctx, req(id), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
							time.Sleep(lasts)
							requeues = !requeues && lasts%2 == 0
							return fsm.ReasonNotRun, requeues
						}})
						if err != nil && refusal(err) == fsm.RefusalNone && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s: %v", id, err)
						}
					})
					time.Sleep(time.Duration(rnd.Int64N(int64(2 * time.Millisecond))))
					if rnd.IntN(12) == 0 {
						w.do(w.cease)
						time.Sleep(time.Duration(rnd.Int64N(int64(4 * time.Millisecond))))
						w.do(w.renew)
					}
				}
				wg.Wait()
				w.end()
			})
		})
	}
}

// A request runs for longer than anybody would wait for the log, and its backend then turns out not to have run it.
func TestPatienceBeginsAnewWithARequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1, 1))
		w.change(func() { w.lag = func() time.Duration { return 100 * time.Millisecond } })
		tries := 0
		err := w.adm.Run(context.Background(), req("a"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
			tries++
			time.Sleep(time.Minute)
			return fsm.ReasonNotRun, tries == 1
		}})
		if err != nil || tries != 2 {
			t.Errorf("%d tries: %v", tries, err)
		}
		w.end()
	})
}
