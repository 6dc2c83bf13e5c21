package storage

import (
	"errors"
	"testing"
	"time"

	"iop/fsm"
)

// TestVerifyComparesAtOneIndex while commands go on, from whichever replica; one that differs is found, one that is down
// is named.
func TestVerifyComparesAtOneIndex(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 100_000))
	c.until("the level to be raised", func() bool { return c.follower().replica.level.Load() == fsm.LevelMax })
	f := c.follower()
	x := runningAt(t, f, nil)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			must(t, x, &fsm.Cancel{Request: "nobody"}, fsm.Unknown)
		}
	}()
	for _, s := range []*Store{c.leader(), f} {
		v, err := s.Verify(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Replicas {
			if r.Err != nil || r.Index != v.Index || r.Digest != v.Replicas[0].Digest {
				t.Errorf("%+v", r)
			}
		}
	}
	close(stop)
	<-done
	f.replica.mu.Lock()
	img := f.replica.machine.Image()
	img.Granted, img.Returned = img.Granted+1, img.Returned+1
	spoiled, err := fsm.Restore(img)
	if err != nil {
		t.Fatal(err)
	}
	f.replica.machine = spoiled
	f.replica.mu.Unlock()
	v, err := c.leader().Verify(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range v.Replicas {
		if same := r.Digest == digestOf(v, c.leader().options.Replica); same == (r.ID == f.options.Replica) {
			t.Errorf("%s: same %v", r.ID, same)
		}
	}
}

func digestOf(v *Verified, id string) [32]byte {
	for _, r := range v.Replicas {
		if r.ID == id {
			return r.Digest
		}
	}
	return [32]byte{}
}

// TestChangeOutlivesTheLeadersDeath: whoever replaces a dead leader at once is not told that its port is closed.
func TestChangeOutlivesTheLeadersDeath(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 10))
	f, dead := c.follower(), c.leader().options.Replica
	c.kill(dead)
	if err := f.Change(within(t), Change{Remove: dead}); err != nil {
		t.Fatal(err)
	}
	c.until("two seats", func() bool { return len(f.Seats(within(t))) == 2 })
}

// TestChangesThroughAFollower: leadership goes where it is sent, and the leader itself is taken out.
func TestChangesThroughAFollower(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 10))
	f := c.follower()
	if err := f.Change(within(t), Change{Transfer: true, To: f.options.Replica}); err != nil {
		t.Fatal(err)
	}
	c.until("it leads", func() bool { return f.leads() })
	other := c.follower()
	if err := other.Change(within(t), Change{Remove: f.options.Replica}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Failed():
	case <-within(t).Done():
		t.Fatal("the leader that was taken out does not know")
	}
	if !errors.Is(f.Err(), ErrRemoved) {
		t.Error(f.Err())
	}
	if err := other.Change(within(t), Change{Remove: "nobody"}); !errors.Is(err, errNotMember) && err == nil {
		t.Error(err)
	}
	c.close(f.options.Replica)
	c.until("two seats", func() bool { return len(other.Seats(within(t))) == 2 })
	down := c.follower().options.Replica
	leader := c.leader()
	if leader.options.Replica == down {
		t.Fatal("no follower")
	}
	time.Sleep(2 * keepEach) // it has been heard of
	c.kill(down)
	for _, x := range leader.Seats(within(t)) {
		if gone := x.Standing == nil; gone != (x.ID == down) || gone && (x.Err == nil || x.Silent < 0) {
			t.Errorf("seat %+v", x)
		}
	}
}

// TestOlderProgramDoesNotJoin a cluster whose log it could not read, and is not taken in.
func TestOlderProgramDoesNotJoin(t *testing.T) {
	c := newCluster(t, "e1", "e2")
	c.tune = func(id string, o *Options) {
		if id == "e2" {
			o.Cluster.LevelMax = fsm.LevelFirst
		}
	}
	one, err := c.open("e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.until("the level to be raised", func() bool { return one.replica.level.Load() == levelMax })
	if _, err := c.open("e2", c.peers()); !errors.Is(err, ErrOldProgram) {
		t.Fatal(err)
	}
	if m := one.Members(); len(m) != 1 {
		t.Errorf("members %v", m)
	}
}
