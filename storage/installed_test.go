package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"iop/fsm"
)

// TestFarBehind: a replica that was away for longer than the leader's log reaches gets the leader's snapshot, goes on
// from there, and its directory is a whole one: it starts again, and its history can be read.
func TestFarBehind(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	c.tune = func(_ string, o *Options) {
		o.snapshotEach, o.keepEntries = 50, 10
		o.History = History{MaxBytes: 1, MaxAge: time.Nanosecond}
	}
	c.start()
	configure(t, c.leader(), world(1, 10_000))
	f := c.follower()
	away := f.options.Replica
	c.close(away)
	l := c.leader()
	x := runningAt(t, l, nil)
	for i := 0; ; i++ {
		must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted)
		if first, _, err := l.bounds(); err == nil && first > 100 {
			break
		}
		if i > 9000 {
			t.Fatal("the log is never cut")
		}
	}
	c.startThese(away)
	c.agree()
	back := c.store(away)
	if installed(back.guard) == "" {
		t.Error("it caught up without the leader's snapshot: the test does not test")
	}
	y := runningAt(t, back, nil)
	must(t, y, admit("there"), fsm.Granted)
	want := digest(back)
	index := back.replica.applied.Load()
	c.close(away)
	p, err := OpenPast(c.dirs[away])
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.At(context.Background(), index)
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != want {
		t.Error("its history tells another state")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	c.startThese(away)
	c.agree()
}

// TestJoinByASnapshot: a replica that comes into a cluster whose log was cut begins with the snapshot.
func TestJoinByASnapshot(t *testing.T) {
	c := newCluster(t, "e1", "e2")
	c.tune = func(_ string, o *Options) {
		o.snapshotEach, o.keepEntries = 50, 10
		o.History = History{MaxBytes: 1, MaxAge: time.Nanosecond}
	}
	one, err := c.open("e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	x := running(t, one, world(1, 10_000), nil)
	for i := 0; ; i++ {
		must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted)
		if first, _, err := one.bounds(); err == nil && first > 100 {
			break
		}
		time.Sleep(time.Millisecond) // snapshots are looked for twice a second: it shall not take all 10,000 slots until then
	}
	c.startThese("e2")
	if err := one.AddMember(within(t), c.peers()[1]); err != nil {
		t.Fatal(err)
	}
	c.agree()
	if installed(c.store("e2").guard) == "" {
		t.Error("it did not get the snapshot: the test does not test")
	}
	c.close("e2")
	c.startThese("e2")
	must(t, x, admit("after"), fsm.Granted)
	c.agree()
}

// TestCrashWhileInstalling: the process ends after the leader's snapshot got its name, and before the old log was gone.
func TestCrashWhileInstalling(t *testing.T) {
	c := newCluster(t, "e1", "e2")
	c.tune = func(_ string, o *Options) {
		o.snapshotEach, o.keepEntries = 50, 10
		o.History = History{MaxBytes: 1, MaxAge: time.Nanosecond}
	}
	one, err := c.open("e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.startThese("e2")
	if err := one.AddMember(within(t), c.peers()[1]); err != nil {
		t.Fatal(err)
	}
	x := running(t, one, world(1, 10_000), nil)
	for i := range 20 {
		must(t, x, admit(fmt.Sprint("r", i)), fsm.Granted)
	}
	c.agree()
	two := c.store("e2")
	digestBefore, cluster := digest(two), two.Cluster()
	c.close("e2")

	// The directory as the crash leaves it: its log, and a snapshot of a later state that the log names.
	dir, err := openDirectory(c.dirs["e2"], "e2", "v1")
	if err != nil {
		t.Fatal(err)
	}
	bolt, err := dir.openLog()
	if err != nil {
		t.Fatal(err)
	}
	log := dir.sealing(bolt)
	var img *fsm.Image
	one.View(func(m *fsm.Machine) { img = m.Image() })
	last, err := log.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	img.Index = last + 500
	store := &snapStore{dir: c.dirs["e2"]}
	members := one.group.log.raft.GetConfiguration().Configuration()
	sink, err := store.Create(1, img.Index, one.log.term(), members, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Set([]byte(installedKey), []byte(sink.ID())); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writeImage(sink, cluster, img), sink.Close(), bolt.Close(), dir.close()); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPast(c.dirs["e2"])
	if err != nil {
		t.Fatal(err)
	}
	if at, err := p.At(context.Background(), 0); err != nil || at.Index() != img.Index || digestBefore == at.Digest() {
		t.Errorf("its history does not begin with the snapshot: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	id, err := readIdentity(c.dirs["e2"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := id.examine(c.dirs["e2"]); err != nil {
		t.Errorf("it is refused: %v", err)
	}
}
