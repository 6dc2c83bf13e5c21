package admission_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

// hold is a dispatch that lasts until release is closed.
func hold(release <-chan struct{}) *client {
	return &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
		<-release
		return fsm.ReasonDone, false
	}}
}

// occupy takes the slot of a world of capacity 1 and returns what gives it back.
func (w *world) occupy() (free func()) {
	release, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := w.adm.Run(context.Background(), req("holder"), hold(release)); err != nil {
			w.t.Error(err)
		}
	}()
	synctest.Wait()
	time.Sleep(5 * time.Millisecond)
	return func() { close(release); <-done }
}

func refusal(err error) fsm.Refusal {
	var r *admission.Refused
	if errors.As(err, &r) {
		return r.Why
	}
	return fsm.RefusalNone
}

func TestWaitsForItsTurnAndIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		places := make(chan int, 100)
		done := make(chan error)
		go func() {
			r := req("b")
			r.Tick = 10 * time.Millisecond
			done <- w.adm.Run(context.Background(), r, &client{queued: func(p int) { places <- p }})
		}()
		time.Sleep(55 * time.Millisecond)
		if n := len(places); n < 5 || n > 6 { // once at first, then each 10 ms
			t.Errorf("told its place %d times", n)
		}
		free()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.end()
	})
}

func TestRefusalsReachTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(1, 1))
		free := w.occupy()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := w.adm.Run(context.Background(), req("timeout"), &client{}); refusal(err) != fsm.RefusalQueueTimeout {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		if err := w.adm.Run(context.Background(), req("full"), &client{}); refusal(err) != fsm.RefusalQueueFull {
			t.Error(err)
		}
		if err := w.adm.Run(context.Background(), req("timeout"), &client{}); refusal(err) != fsm.RefusalInProgressElsewhere {
			t.Error(err)
		}
		unknown := req("unknown")
		unknown.Model = "?"
		if err := w.adm.Run(context.Background(), unknown, &client{}); refusal(err) != fsm.RefusalModelNotFound {
			t.Error(err)
		}
		wg.Wait()
		free()
		w.end()
	})
}

// Fault: the clean-up was cancelled together with the request.
func TestClientGone(t *testing.T) {
	for _, at := range []time.Duration{0, 500 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 5 * time.Millisecond} {
		for _, freed := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %v freed=%v", at, freed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1, pool(4, 1))
					free := func() {}
					if !freed {
						free = w.occupy()
					}
					ctx, cancel := context.WithCancel(context.Background())
					done := make(chan error)
					go func() {
						done <- w.adm.Run(ctx, req("b"), &client{dispatch: func(ctx context.Context, _ fsm.Grant) (fsm.Reason, bool) {
							<-ctx.Done()
							return fsm.ReasonCanceled, true // a requeue for a client that is gone must become a plain release
						}})
					}()
					time.Sleep(at)
					cancel()
					if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					free()
					w.end()
				})
			})
		}
	}
}

// Fault: a cancel that races the grant leaves a busy or a lost slot. The cancel travels with the release that grants.
func TestCancelRacesTheGrant(t *testing.T) {
	for _, order := range []string{"release first", "cancel first"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, pool(4, 1))
				free := w.occupy()
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error)
				go func() {
					done <- w.adm.Run(ctx, req("b"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
						t.Error("dispatched")
						return fsm.ReasonDone, false
					}})
				}()
				time.Sleep(5 * time.Millisecond)
				if order == "release first" {
					free()
					cancel()
				} else {
					cancel()
					free()
				}
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				w.end()
			})
		})
	}
}

func TestRequeueGoesToAnotherProviderAtItsOldPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1, 1))
		var seen []fsm.ProviderID
		c := &client{dispatch: func(_ context.Context, g fsm.Grant) (fsm.Reason, bool) {
			seen = append(seen, g.Provider)
			return fsm.ReasonNotRun, true
		}}
		err := w.adm.Run(context.Background(), req("a"), c)
		if refusal(err) != fsm.RefusalUnavailable || len(seen) != 2 || seen[0] == seen[1] {
			t.Errorf("%v after %v", err, seen)
		}
		w.end()
	})
}

// A link that is lost takes its leases with it; a request that provably did not run is admitted anew.
func TestLinkLostWhileARequeueIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		tries := 0
		c := &client{dispatch: func(_ context.Context, g fsm.Grant) (fsm.Reason, bool) {
			if tries++; tries == 1 {
				w.do(func() {
					w.apply(w.session, &fsm.LinkLost{Node: "n", Generation: g.Generation, Reason: fsm.ReasonLinkLost})
					w.register(2)
				})
				return fsm.ReasonLinkLost, true
			}
			return fsm.ReasonDone, false
		}}
		if err := w.adm.Run(context.Background(), req("a"), c); err != nil || tries != 2 {
			t.Errorf("%v after %d tries", err, tries)
		}
		w.end()
	})
}

func TestReleaseIsRepeatedWhileTheLogIsOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		refused := 0
		w.change(func() {
			w.fail = func(c fsm.Command) error {
				if _, ok := c.(*fsm.Release); ok && refused < 20 {
					refused++
					return errBusy
				}
				return nil
			}
		})
		if err := w.adm.Run(context.Background(), req("a"), &client{}); err != nil {
			t.Error(err)
		}
		w.end()
		if refused != 20 {
			t.Errorf("refused %d times", refused)
		}
	})
}

// A waiter runs out in the very entry that queues another with its id: the end is for the first.
func TestEndOfAWaiterIsNotTakenForAnotherWithItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- w.adm.Run(context.Background(), req("b"), &client{}) }()
		time.Sleep(1950 * time.Millisecond)
		// The entry comes after the deadline of 2 s.
		w.change(func() { w.lag = func() time.Duration { return 100 * time.Millisecond } })
		go func() { second <- w.adm.Run(context.Background(), req("b"), &client{}) }()
		if err := <-first; refusal(err) != fsm.RefusalQueueTimeout {
			t.Error(err)
		}
		select {
		case err := <-second:
			t.Error("the second ended too:", err)
		default:
		}
		free()
		if err := <-second; err != nil {
			t.Error(err)
		}
		w.end()
	})
}

func TestCloseEndsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		done := make(chan error)
		go func() { done <- w.adm.Run(context.Background(), req("b"), &client{}) }()
		time.Sleep(5 * time.Millisecond)
		w.adm.Stop()
		if err := w.adm.Run(context.Background(), req("c"), &client{}); !errors.Is(err, admission.ErrStopping) {
			t.Error(err)
		}
		w.adm.Close()
		if err := <-done; !errors.Is(err, admission.ErrStopping) {
			t.Error(err)
		}
		free()
		if err := w.adm.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		close(w.stop)
		<-w.done
	})
}

func TestErrorsOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		w.change(func() { w.fail = func(fsm.Command) error { return errBusy } })
		if err := w.adm.Run(context.Background(), req("a"), &client{}); !errors.Is(err, admission.ErrOverloaded) || !errors.Is(err, errBusy) {
			t.Error(err)
		}
		broken := errors.New("disk full")
		w.change(func() { w.fail = func(fsm.Command) error { return broken } })
		if err := w.adm.Run(context.Background(), req("a"), &client{}); !errors.Is(err, admission.ErrFailed) || !errors.Is(err, broken) {
			t.Error(err)
		}
		w.change(func() { w.fail = func(fsm.Command) error { return nil } })
		w.end()
		if err := w.adm.Run(context.Background(), req("a"), &client{}); !errors.Is(err, admission.ErrStopping) {
			t.Error(err)
		}
		if err := admission.New(admission.Options{}).Run(context.Background(), req("a"), &client{}); !errors.Is(err, admission.ErrNoLeader) {
			t.Error(err)
		}
	})
}

// A bound on draining sends waiters away without a Cancel, so that their clients find their places again.
func TestDrainKeepsThePlacesOfThoseItSendsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		done := make(chan error)
		go func() { done <- w.adm.Run(context.Background(), req("b"), &client{}) }()
		time.Sleep(5 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := w.adm.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, admission.ErrStopping) {
			t.Error(err)
		}
		var pending int
		w.do(func() { pending = w.machine.Snapshot().Queue.Pending })
		if pending != 1 {
			t.Errorf("%d waiters left", pending)
		}
		free() // the slot goes to the one that was sent away, and must come back at once
		w.end()
	})
}

func TestPanicInDispatchReturnsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		func() {
			defer func() { _ = recover() }()
			_ = w.adm.Run(context.Background(), req("a"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
				panic("boom")
			}})
		}()
		w.end()
	})
}

// Seeded random lives: clients that come, leave, come again with the same id, backends that refuse, links that are
// lost, a log that is overloaded. Each lease is returned exactly once, no provider is dispatched beyond its capacity.
func TestRandomLives(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 20
	}
	for seed := range uint64(seeds) {
		ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomLife(t, seed) })
		})
		if !ok {
			return
		}
	}
}

func randomLife(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 99))
	var mu sync.Mutex
	n := func(max int) int { mu.Lock(); defer mu.Unlock(); return rnd.IntN(max) }
	ms := func(max int) time.Duration { return time.Duration(n(max*1000)) * time.Microsecond }

	c := pool(1+n(8), 1+n(2), 1+n(2))
	w := newWorld(t, seed, c)
	overload := n(3) == 0
	w.change(func() {
		w.lag = func() time.Duration { return ms(3) }
		w.fail = func(fsm.Command) error {
			if overload && n(4) == 0 {
				return errBusy
			}
			return nil
		}
	})
	links := n(2) == 0
	var running [2]int
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			time.Sleep(ms(200))
			r := req(fmt.Sprint("r", i/2)) // two clients share an id
			if n(4) == 0 {
				r.Model = "x"
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if n(3) == 0 {
				time.AfterFunc(ms(40), cancel)
			}
			_ = w.adm.Run(ctx, r, &client{dispatch: func(ctx context.Context, g fsm.Grant) (fsm.Reason, bool) {
				p := 0
				if g.Provider == "p1" {
					p = 1
				}
				mu.Lock()
				running[p]++
				if over := running[p] > c.Providers[p].Capacity; over && !links {
					t.Errorf("%s runs %d", g.Provider, running[p])
				}
				mu.Unlock()
				select {
				case <-time.After(ms(30)):
				case <-ctx.Done():
				}
				mu.Lock()
				running[p]--
				mu.Unlock()
				return fsm.ReasonDone, n(4) == 0
			}})
		})
	}
	if links {
		wg.Go(func() {
			for i := range 5 {
				time.Sleep(ms(60))
				w.do(func() {
					w.apply(w.session, &fsm.LinkLost{Node: "n", Generation: w.gen, Reason: fsm.ReasonLinkLost})
					w.register(uint64(i + 2))
				})
			}
		})
	}
	wg.Wait()
	w.end()
}
