package admission_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"iop/fsm"
)

// TestLateCancelSparesWhoCameAgain: a client leaves the queue just as its session ends, and comes again with the same key in
// the next one before its Cancel is told of that. The Cancel must neither remove the second from the place that it took
// over, nor give back the slot on which it runs.
func TestLateCancelSparesWhoCameAgain(t *testing.T) {
	for _, runs := range []bool{false, true} {
		name := map[bool]string{false: "who waits", true: "who runs"}[runs]
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { lateCancel(t, runs) }) })
	}
}

func lateCancel(t *testing.T, runs bool) {
	c := withGrace(pool(16, 1))
	c.Pool.QueueTimeout, c.Pool.ReattachWindow = 60*fsm.Second, 60*fsm.Second
	w := newWorld(t, 1, c)
	free := w.occupy()
	leaves, leave := context.WithCancel(context.Background())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- w.adm.Run(leaves, req("b"), &client{}) }()
	time.Sleep(5 * time.Millisecond)
	w.change(func() { w.lag = func() time.Duration { return 20 * time.Millisecond } })
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	held := 0
	w.do(func() { // before the Cancel, which is in this entry too
		w.cease()
		w.renew()
		go func() {
			second <- w.adm.Run(context.Background(), req("b"), &client{dispatch: func(context.Context, fsm.Grant) (fsm.Reason, bool) {
				time.Sleep(time.Second)
				w.do(func() { held = w.machine.Load().InFlight })
				return fsm.ReasonDone, false
			}})
		}()
		if runs {
			go free()
		}
		time.Sleep(time.Millisecond)
	})
	time.Sleep(time.Second)
	if !runs {
		free()
	}
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
