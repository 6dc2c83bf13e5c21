package storage

import (
	"testing"
	"time"

	"iop/fsm"
)

func TestOpenIsFast(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		start := time.Now()
		s := openAt(t, dir)
		t.Logf("open took %v", time.Since(start))
		closeStore(t, s)
	}
}

func TestStateOutlivesAnOrderlyStop(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	x := running(t, s, world(1, 2), nil)
	for _, id := range []string{"r1", "r2", "r3"} {
		must(t, x, admit(id), fsm.Granted, fsm.Queued)
	}
	before := digest(s)
	closeStore(t, s)

	m, info, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != before || info.Replica != "e1" || info.Applied == 0 {
		t.Errorf("inspect sees another state: %+v", info)
	}
	s = openAt(t, dir)
	if digest(s) != before {
		t.Error("the state after the start is not that before the stop")
	}
	checked(t, s)
}
