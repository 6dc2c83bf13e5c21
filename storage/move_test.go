package storage

import (
	"errors"
	"testing"

	"iop/fsm"
)

// TestAddressChanges: a replica that comes back at another address tells the leader, and the others find it there.
func TestAddressChanges(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 10))
	old := c.peers()
	id := c.follower().options.Replica
	c.close(id)
	s := c.net.open(t, id, "")
	s.close()
	c.at[id] = s.address()
	if _, err := c.open(id, old); err != nil {
		t.Fatal(err)
	}
	c.until("all to know its address", func() bool {
		for _, s := range c.running() {
			if i := find(s.group.book.logged(), id); i < 0 || s.group.book.logged()[i].Address != c.at[id] {
				return false
			}
		}
		return true
	})
	configure(t, c.store(id), world(1, 11))
	c.agree()
}

// TestSingleDirectoryGrows: the directory of a replica that was always alone becomes that of a member, unchanged.
func TestSingleDirectoryGrows(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3")
	s := openAt(t, c.dirs["e1"])
	x := running(t, s, world(1, 10), nil)
	must(t, x, admit("before"), fsm.Granted)
	cluster := s.Cluster()
	closeStore(t, s)
	c.startThese("e1", "e2", "e3")
	for _, s := range c.running() {
		if s.Cluster() != cluster {
			t.Errorf("%s is of cluster %s", s.options.Replica, s.Cluster())
		}
	}
	c.until("all to vote", func() bool {
		voters := 0
		for _, m := range c.leader().Members() {
			if m.Voter {
				voters++
			}
		}
		return voters == 3
	})
	c.agree()
	c.kill("e1")
	l := c.leader()
	l.View(func(m *fsm.Machine) {
		if _, ok := m.Request("before"); !ok {
			t.Error("what was admitted before is lost")
		}
	})
	configure(t, l, world(1, 12))
}

// TestLevelOfTheOldest: no replica is given what one of them can't read.
func TestLevelOfTheOldest(t *testing.T) {
	c := newCluster(t, "e1", "e2")
	c.tune = func(id string, o *Options) {
		if id == "e2" {
			o.Cluster.LevelMax = fsm.LevelFirst
		}
	}
	c.start()
	l := c.leader()
	configure(t, l, world(1, 10))
	x := runningAt(t, l, nil)
	direct := admit("direct")
	direct.Provider = "p0"
	if _, err := x.Do(within(t), direct); !errors.Is(err, ErrLevel) {
		t.Errorf("proposed what the other can't read: %v", err)
	}
	c.close("e2")
	c.tune = nil
	c.startThese("e2")
	c.until("the level to be raised", func() bool { return c.leader().Standing().Level == fsm.LevelMax })
	c.agree()
}

// TestTransfer: leadership goes where it is told to.
func TestTransfer(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	l, f := c.leader(), c.follower()
	if err := f.Transfer(within(t), ""); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower transferred: %v", err)
	}
	if err := l.Transfer(within(t), f.options.Replica); err != nil {
		t.Fatal(err)
	}
	c.until("the new leader", func() bool { return f.Role() == RoleLeader })
	configure(t, l, world(1, 10))
	c.agree()
}
