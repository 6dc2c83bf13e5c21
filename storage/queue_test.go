package storage

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"iop/fsm"
)

func TestOldQueueIsOverloaded(t *testing.T) {
	var now time.Duration
	q := newQueue(func() time.Duration { return now })
	l := &lane{id: 1}
	put := func(c fsm.Command) error { return q.put(l, c, nil, false) }
	if err := put(admit("a")); err != nil {
		t.Fatal(err)
	}
	now = behindMax
	if err := put(admit("b")); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	now += 1
	if err := put(admit("c")); !errors.Is(err, ErrOverloaded) {
		t.Errorf("queued for too long: %v", err)
	}
	taken := q.take()
	if err := put(admit("d")); !errors.Is(err, ErrOverloaded) {
		t.Errorf("in flight for too long: %v", err)
	}
	if err := put(&fsm.Release{Lease: 1}); err != nil {
		t.Errorf("a release: %v", err)
	}
	q.answered(1, taken[0].seq, taken[0].sum)
	if err := put(admit("e")); err != nil {
		t.Errorf("caught up: %v", err)
	}
}

func TestEntriesAreBounded(t *testing.T) {
	q := newQueue(func() time.Duration { return 0 })
	lanes := []*lane{{id: 1}, {id: 2}}
	total := 0
	for i := range 3 * entryCommandsMax {
		if err := q.put(lanes[i%2], &fsm.Release{Lease: 1}, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	last := map[*lane]uint64{}
	for {
		batches := q.take()
		if len(batches) == 0 {
			break
		}
		n := 0
		for _, b := range batches {
			n += b.commands()
			if b.seq != last[b.lane]+1 {
				t.Errorf("batch %d of session %d after %d", b.seq, b.lane.id, last[b.lane])
			}
			if b.ack != 1 {
				t.Errorf("acknowledges below %d while 1 is in flight", b.ack)
			}
			last[b.lane] = b.seq
		}
		if total += n; n > entryCommandsMax {
			t.Errorf("%d commands in an entry", n)
		}
	}
	if total != 3*entryCommandsMax {
		t.Errorf("%d commands came out", total)
	}
}

// TestLanesTakeTurns: a session that proposes much does not hold up one that proposes little.
func TestLanesTakeTurns(t *testing.T) {
	q := newQueue(func() time.Duration { return 0 })
	loud, quiet := &lane{id: 1}, &lane{id: 2}
	for range 5 * entryCommandsMax {
		if err := q.put(loud, &fsm.Release{Lease: 1}, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.put(quiet, admit("a"), nil, false); err != nil {
		t.Fatal(err)
	}
	q.take()
	if second := q.take(); second[0].lane != quiet {
		t.Error("the quiet one waits for all of the loud one's")
	}
}

func TestReleasesAloneLinger(t *testing.T) {
	q := newQueue(func() time.Duration { return 0 })
	l := &lane{id: 1}
	hurry := func() bool { _, hurry, _ := q.state(); return hurry }
	if err := q.put(l, &fsm.Release{Lease: 1}, nil, false); err != nil || hurry() {
		t.Error("a plain release is in a hurry", err)
	}
	if err := q.put(l, admit("a"), nil, false); err != nil || !hurry() {
		t.Error("an admission is not", err)
	}
	q.take()
	if some, hurry, _ := q.state(); some || hurry {
		t.Error("something is left")
	}
	for _, c := range []fsm.Command{&fsm.Release{Lease: 1, Requeue: true}, &fsm.Cancel{}, &fsm.LinkLost{}} {
		if err := q.put(l, c, nil, false); err != nil || !hurry() {
			t.Errorf("%T does not flush: %v", c, err)
		}
		q.take()
	}
	if err := q.put(l, &fsm.Release{Lease: 1}, nil, true); err != nil || !hurry() {
		t.Error("a release that somebody waits for is not in a hurry", err)
	}
}

func TestClusterTimeStepsAreClamped(t *testing.T) {
	var mono time.Duration
	c := clock{monotonic: func() time.Duration { return mono }}
	mono = time.Hour
	c.anchor(5 * fsm.Second)
	mono += 300 * time.Millisecond
	if got := c.read(); got != 5*fsm.Second+300*fsm.Millisecond {
		t.Errorf("time %v", got)
	}
	mono += time.Hour // the process was stopped
	if got := c.read(); got != 6*fsm.Second+300*fsm.Millisecond {
		t.Errorf("time after a stop %v", got)
	}
	mono -= time.Minute
	if got := c.read(); got != 6*fsm.Second+300*fsm.Millisecond {
		t.Errorf("time went back or on: %v", got)
	}
}

// TestAlwaysUnderWayIsNotBehind: a follower has the next batch under way before the one before is answered; that is not a
// log that does not keep up.
func TestAlwaysUnderWayIsNotBehind(t *testing.T) {
	now := time.Second
	q := newQueue(func() time.Duration { return now })
	l := &lane{id: 1}
	var before *batch
	for i := range 40 {
		if err := q.put(l, admit(fmt.Sprint("r", i)), nobody{}, true); err != nil {
			t.Fatalf("after %v: %v", now, err)
		}
		b := q.take()[0]
		if before != nil && q.answered(1, before.seq, before.sum) == nil {
			t.Fatal("no batch to answer")
		}
		before = b
		now += behindMax / 10
	}
	now += 2 * behindMax
	if err := q.put(l, admit("late"), nobody{}, true); !errors.Is(err, ErrOverloaded) {
		t.Errorf("what is under way for too long goes unnoticed: %v", err)
	}
}
