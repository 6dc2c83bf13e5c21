package admission_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"iop/fsm"
)

// TestCancelOfAnEndedWaiterStrandsNoOther: a client gives up just when its wait ends by the deadline, and has already
// come again with the same key. The Cancel of the first then removes the second, which must not wait for ever.
func TestCancelOfAnEndedWaiterStrandsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, pool(4, 1))
		free := w.occupy()
		leaves, leave := context.WithCancel(context.Background())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- w.adm.Run(leaves, req("b"), &client{}) }()
		time.Sleep(1950 * time.Millisecond)
		// The deadline of 2 s passes while the second Admit and then the Cancel wait for the log.
		w.change(func() {
			w.lag = func() time.Duration {
				time.Sleep(100 * time.Millisecond)
				w.apply(0, &fsm.Expire{Term: 1})
				w.change(func() { w.lag = func() time.Duration { return time.Millisecond } })
				return 0
			}
		})
		go func() { second <- w.adm.Run(context.Background(), req("b"), &client{}) }()
		synctest.Wait()
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
		free()
		select {
		case err := <-second:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the second waits for ever")
		}
		w.end()
	})
}
