package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"iop/fsm"
)

// TestLateCancelSparesWhoCameAgain: a client leaves the queue just as its session ends, and comes again with the same key in
// the next one before its Cancel is told of that, or while it pauses because the log was busy. The Cancel must neither
// remove the second from the place that it took over, nor give back the slot on which it runs.
func TestLateCancelSparesWhoCameAgain(t *testing.T) {
	for _, runs := range []bool{false, true} {
		for _, pauses := range []bool{false, true} {
			t.Run(fmt.Sprintf("runs=%v pauses=%v", runs, pauses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { lateCancel(t, runs, pauses) })
			})
		}
	}
}

func lateCancel(t *testing.T, runs, pauses bool) {
	c := withGrace(pool(16, 1))
	c.Pool.QueueTimeout, c.Pool.ReattachWindow = 60*fsm.Second, 60*fsm.Second
	w := newWorld(t, 1, c)
	free := w.occupy()
	leaves, leave := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- w.adm.Run(leaves, req("b"), &client{}) }()
	time.Sleep(5 * time.Millisecond)
	w.change(func() {
		w.lag = func() time.Duration { return 20 * time.Millisecond }
		w.fail = func(c fsm.Command) error {
			if _, ok := c.(*fsm.Cancel); ok && pauses && w.nonce == 1 {
				return errBusy
			}
			return nil
		}
	})
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	held := 0
	var other fsm.LeaseID
	if pauses {
		time.Sleep(time.Second) // its pauses have grown
	}
	w.do(func() { // before the Cancel, if that is in this entry too
		w.cease() // the slot comes back with it
		w.renew()
		if !runs {
			other = w.apply(w.session, &fsm.Admit{Request: "other", Model: "m", Needs: fsm.NeedChat}).Grant.Lease
		}
		go func() {
			second <- w.adm.Run(context.Background(), req("b"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
				time.Sleep(time.Second)
				w.do(func() { held = w.machine.Load().InFlight })
				return fsm.ReasonDone, false
			}})
		}()
		time.Sleep(time.Millisecond)
	})
	time.Sleep(100 * time.Millisecond)
	if !runs { // what is granted then is not for the first, though that may still pause
		w.do(func() { w.apply(w.session, &fsm.Release{Lease: other, Reason: fsm.ReasonDone}) })
	}
	free()
	select {
	case err := <-second:
		if err != nil || held != 1 {
			t.Errorf("%v; %d slots were held during its run", err, held)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("the second waits for ever")
	}
	w.end()
}
