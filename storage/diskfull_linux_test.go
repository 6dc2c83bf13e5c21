package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"iop/fsm"
)

// TestDiskFull fills a real small file system: the store ends loudly with the cure, and when there is space again it
// opens with everything that was acknowledged.
func TestDiskFull(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(root, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "data")
	s := openAt(t, dir)
	x := running(t, s, world(1, 100_000), nil)
	acknowledged := map[fsm.RequestID]bool{}
	for i := 0; s.Err() == nil; i++ {
		id := fsm.RequestID(fmt.Sprintf("%0128d", i))
		if o, err := x.Do(within(t), admit(string(id))); err == nil && o.Code == fsm.Granted {
			acknowledged[id] = true
		}
		if i > 100_000 {
			t.Fatal("3 MiB do not get full")
		}
	}
	failedWith(t, s, syscall.ENOSPC, "free some space")
	closeStore(t, s)
	if _, err := Open(within(t), Options{Dir: dir, Replica: "e1"}); err == nil {
		t.Fatal("opened while the disk is full")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir)
	s.View(func(m *fsm.Machine) {
		for id := range acknowledged {
			if _, ok := m.Request(id); !ok {
				t.Errorf("%s was acknowledged and is gone", id)
			}
		}
		if n := len(m.Leases()); n < len(acknowledged) || n > len(acknowledged)+1 {
			t.Errorf("%d leases, %d were acknowledged", n, len(acknowledged))
		}
	})
	checked(t, s)
	closeStore(t, s)
}
