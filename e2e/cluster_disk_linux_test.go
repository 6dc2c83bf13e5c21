//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newDisks makes a disk for each of three replicas, and says how to start them with it.
func newDisks(t testing.TB) ([]*disk, func(*cluster)) {
	t.Helper()
	disks := []*disk{newDisk(t), newDisk(t), newDisk(t)}
	return disks, func(c *cluster) {
		c.border = func(i int, path string, args ...string) (string, []string) { return disks[i].border(path, args...) }
	}
}

// TestSlowDiskUnderLoad: the disk of a follower is slow, then that of the leader. A follower's holds nobody up; with the
// leader's all is slow, and nothing else.
func TestSlowDiskUnderLoad(t *testing.T) {
	t.Parallel()
	disks, border := newDisks(t)
	x := newRush(t, border)
	for range rounds(1, 5) {
		leader := x.c.leader()
		f := x.inflict(&fault{what: "slow disk of a follower"})
		slow := disks[x.c.followers()[0]]
		slow.slow(200 * time.Millisecond)
		before := slow.synced()
		x.nextGrant(time.Now(), 0, 1, 2)
		x.flows(40)
		if now := x.c.leader(); now != leader {
			t.Errorf("%s leads after %s, whose disk is as before", x.c.id(now), x.c.id(leader))
		}
		if slow.synced() == before {
			t.Error("the slow disk had nothing to do: this shows nothing")
		}
		slow.well()
		x.mend(f)
		f = x.inflict(&fault{what: "slow disk of the leader"})
		disks[x.c.leader()].slow(60 * time.Millisecond)
		x.nextGrant(time.Now(), 0, 1, 2)
		x.flows(20)
		for _, d := range disks {
			d.well()
		}
		x.mend(f)
		x.flows(12)
	}
	x.end()
}

// TestHungDiskUnderLoad: the leader's disk takes a write and does not come back, then a follower's reports an error. The
// replica says so and ends, with what runs through it served; the others go on without it. With a disk that works it is
// one of them again.
func TestHungDiskUnderLoad(t *testing.T) {
	t.Parallel()
	disks, border := newDisks(t)
	x := newRush(t, border)
	c := x.c
	for range rounds(1, 3) {
		leader := c.leader()
		x.loseDisk(leader, disks[leader], disks[leader].hang, "does not return")
		last := c.followers()[1]
		x.loseDisk(last, disks[last], func() { disks[last].fail(unix.EIO) }, "input/output error")
	}
	x.end()
}

// loseDisk lives through the loss of a replica's disk.
func (x *rush) loseDisk(at int, d *disk, how func(), cause string) {
	c, t := x.c, x.c.t
	t.Helper()
	streams := x.halfway(cause)
	f := x.inflict(&fault{what: "disk of " + c.id(at) + ": " + cause, at: []int{at}, breaks: true, refuses: true})
	began := time.Now()
	how()
	rest := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == at })
	first, last := x.nextGrant(began, rest...)
	t.Logf("%s: the next grant after %v, through both others after %v", f.what, first.Round(time.Millisecond), last.Round(time.Millisecond))
	edge := c.at(at).edge
	await(t, c.id(at)+" says what is wrong with its disk", func() bool { return edge.says(cause) })
	if now := c.leader(rest...); now == at {
		t.Errorf("%s leads without a disk", c.id(at))
	}
	streams.end(t)
	if code := edge.code(t); code != 1 {
		t.Errorf("%s ended with code %d, want 1", c.id(at), code)
	}
	d.well()
	c.start(at)
	c.caughtUp(at)
	x.mend(f)
	x.flows(12)
}

// TestFullDiskUnderLoad: the leader's disk is full: it ends and says so, the others go on, and with space again it comes
// back. It needs the right to mount.
func TestFullDiskUnderLoad(t *testing.T) {
	t.Parallel()
	var disks []string
	for range 3 {
		disk := t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
			t.Skipf("can't mount a small disk: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		disks = append(disks, disk)
	}
	x := newRush(t, func(c *cluster) {
		for i, disk := range disks {
			data := filepath.Join(disk, "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(data, c.at(i).dataDir()); err != nil {
				t.Fatal(err)
			}
		}
	})
	c := x.c
	leader := c.leader()
	f := x.inflict(&fault{what: "full disk of the leader", at: []int{leader}, breaks: true, refuses: true})
	ballast := filepath.Join(disks[leader], "ballast")
	fill(t, ballast)
	edge := c.at(leader).edge
	// The log's file has some room yet; the load fills it.
	awaitWithin(t, 2*patience, "the leader ends", func() bool { return !edge.running() })
	if code := edge.code(t); code != 1 || !edge.says("the disk is full") {
		t.Errorf("%s ended with code %d, want 1 and the cause", c.id(leader), code)
	}
	x.nextGrant(time.Now(), c.running()...)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.start(leader)
	c.caughtUp(leader)
	x.mend(f)
	x.flows(12)
	x.end()
}
