package storage

import (
	"sync"
	"testing"

	"iop/fsm"
)

// A new configuration reaches the session before anything that was decided under it: grants of waiters, and the outcomes
// of commands in the same entry.
func TestConfigurationIsToldBeforeWhatItDecides(t *testing.T) {
	s := openAt(t, t.TempDir())
	var mu sync.Mutex
	var told []string
	tell := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, what)
	}
	over := make(chan struct{})
	x := running(t, s, world(1, 1), func(effects []fsm.Effect) {
		for _, e := range effects {
			switch e.Kind {
			case fsm.EffectConfig:
				tell("config")
			case fsm.EffectGranted:
				tell("granted " + string(e.Request))
				if e.Request == "r3" {
					close(over)
				}
			}
		}
	})
	must(t, x, admit("r1"), fsm.Granted)
	must(t, x, admit("r2"), fsm.Queued)
	must(t, x, admit("r3"), fsm.Queued)
	wider := world(1, 3)
	wider.Document = []byte(`{"v":2}`)
	s.put(s.plain, wider, funcReceiver(func(o fsm.Outcome, err error) {
		if err != nil || o.Code != fsm.Applied {
			t.Error(o, err)
		}
		tell("outcome")
	}), false)
	<-over
	mu.Lock()
	defer mu.Unlock()
	want := []string{"config", "outcome", "granted r2", "granted r3"}
	for i := range want {
		if len(told) != len(want) || told[i] != want[i] {
			t.Fatalf("told %v, want %v", told, want)
		}
	}
}
