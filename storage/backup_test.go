package storage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"iop/fsm"
)

// backedUp is a backup of a replica with leases and waiters, and what it holds.
func backedUp(t *testing.T) (backup []byte, info BackupInfo, want [32]byte) {
	t.Helper()
	s := openAt(t, t.TempDir())
	x := running(t, s, world(1, 1), nil)
	must(t, x, admit("held"), fsm.Granted)
	must(t, x, admit("waits"), fsm.Queued)
	var b bytes.Buffer
	info, err := s.Backup(&b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), info, digest(s)
}

func TestBackupHoldsTheState(t *testing.T) {
	b, info, want := backedUp(t)
	img, read, err := ReadBackup(bytes.NewReader(b))
	if err != nil || read != info || img.Index != info.Index || img.Digest() != want {
		t.Fatal(read, info, err)
	}
}

// TestBackupOfADirectory is that of the running replica.
func TestBackupOfADirectory(t *testing.T) {
	dir, want := filled(t)
	var b bytes.Buffer
	if _, err := BackupDirectory(dir, "v1", &b); err != nil {
		t.Fatal(err)
	}
	if img, _, err := ReadBackup(&b); err != nil || img.Digest() != want {
		t.Error(err)
	}
}

// TestDamagedBackupIsRefused wherever it is cut off or changed, and nothing is written.
func TestDamagedBackupIsRefused(t *testing.T) {
	good, _, _ := backedUp(t)
	dir := filepath.Join(t.TempDir(), "data")
	refused := func(what string, b []byte) {
		t.Helper()
		if _, err := Restore(bytes.NewReader(b), dir, "e1", "v1"); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%s: the directory was made", what)
		}
	}
	for _, n := range []int{0, 7, 11, 60, len(good) / 2, len(good) - 33, len(good) - 1} {
		refused("cut", good[:n])
		bad := bytes.Clone(good)
		bad[n] ^= 1
		refused("changed", bad)
	}
	newer := bytes.Replace(good, []byte(`"format":1`), []byte(`"format":9`), 1)
	if _, _, err := ReadBackup(bytes.NewReader(newer)); !errors.Is(err, ErrDamaged) { // the checksum comes first
		t.Error(err)
	}
}

// TestNewerBackupIsRefused with the version that wrote it.
func TestNewerBackupIsRefused(t *testing.T) {
	img := fsm.New().Image()
	img.Index, img.Term, img.Level = 3, 1, fsm.LevelMax+1
	var b bytes.Buffer
	if _, err := writeBackup(&b, img, BackupInfo{Cluster: "c", Replica: "e1", Program: "v9"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadBackup(&b); !errors.Is(err, ErrNewer) || !bytes.Contains([]byte(err.Error()), []byte(`"v9"`)) {
		t.Error(err)
	}
}

// TestRestoreBeginsANewCluster: with the state of the backup, alone, under another id; the session of before is ended by
// the first start and what waited is in its place.
func TestRestoreBeginsANewCluster(t *testing.T) {
	for _, replica := range []string{"e1", "other"} {
		t.Run(replica, func(t *testing.T) {
			b, info, _ := backedUp(t)
			dir := filepath.Join(t.TempDir(), "data")
			r, err := Restore(bytes.NewReader(b), dir, replica, "v2")
			if err != nil {
				t.Fatal(err)
			}
			if r.Cluster == info.Cluster || r.Was != info.Cluster || r.Index != info.Index || r.Leases != 1 || r.Waiters != 1 {
				t.Errorf("%+v", r)
			}
			if _, err := Restore(bytes.NewReader(b), dir, replica, "v2"); !errors.Is(err, errNotEmpty) {
				t.Errorf("restored over it: %v", err)
			}
			s := openWith(t, Options{Dir: dir, Replica: replica, Version: "v2", Logger: testLogger(t)})
			x, err := s.OpenSession(within(t), fsm.EdgeID(replica), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.View(func(m *fsm.Machine) {
				if n := m.Pending(); n != 1 {
					t.Errorf("%d wait", n)
				}
				var open []fsm.EdgeID
				m.EachSession(func(e fsm.EdgeID, _ fsm.SessionID) { open = append(open, e) })
				if !slices.Equal(open, []fsm.EdgeID{fsm.EdgeID(replica)}) {
					t.Errorf("sessions %v", open)
				}
			})
			checked(t, s)
			must(t, x, admit("waits"), fsm.Queued) // re-attached
			if o := must(t, x, &fsm.RegisterNode{Node: "n1", Instance: 9}, fsm.Registered); o.Generation <= leap {
				t.Errorf("generation %d may have been given by the old cluster", o.Generation)
			}
			s.View(func(m *fsm.Machine) {
				if m.NextLease() <= leap || m.Index() <= leap {
					t.Errorf("lease %d, index %d may have been given by the old cluster", m.NextLease(), m.Index())
				}
			})
			if s.Cluster() != r.Cluster {
				t.Errorf("cluster %s", s.Cluster())
			}
			closeStore(t, s)
			if again := openWith(t, Options{Dir: dir, Replica: replica, Version: "v2", Logger: testLogger(t)}); again.Pending() != 1 {
				t.Error("another state after a restart")
			}
		})
	}
}

// TestRestoreWantsAnEmptyDirectory, and leaves another as it is.
func TestRestoreWantsAnEmptyDirectory(t *testing.T) {
	b, _, _ := backedUp(t)
	dir, want := filled(t)
	if _, err := Restore(bytes.NewReader(b), dir, "e1", "v1"); !errors.Is(err, errNotEmpty) {
		t.Error(err)
	}
	if s := openAt(t, dir); digest(s) != want {
		t.Error("it was changed")
	}
}

// TestRecoverOfOneSurvivor: two of three are gone; the third goes on alone with all that it had, and takes in new ones.
func TestRecoverOfOneSurvivor(t *testing.T) {
	c := newCluster(t, "e1", "e2", "e3").start()
	configure(t, c.leader(), world(1, 1))
	f := c.follower()
	x := runningAt(t, f, nil)
	must(t, x, admit("held"), fsm.Granted)
	must(t, x, admit("waits"), fsm.Queued)
	c.agree()
	was, id := f.Cluster(), f.options.Replica
	if _, err := Recover(t.Context(), c.dirs[id], "v2"); !errors.Is(err, ErrLocked) {
		t.Fatalf("of a running replica: %v", err)
	}
	for _, id := range c.ids {
		c.kill(id)
	}
	r, err := Recover(t.Context(), c.dirs[id], "v2")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Members) != 3 || r.Was != was || r.Cluster == was || r.Leases != 1 || r.Waiters != 1 || len(r.Sessions) != 0 {
		t.Errorf("%+v", r)
	}
	if got, err := ReplicaOf(r.Kept); err != nil || got != id {
		t.Errorf("kept %s: %v", got, err)
	}
	s, err := c.open(id, c.peers())
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Members(); len(m) != 1 || m[0].ID != id {
		t.Errorf("members %v", m)
	}
	s.View(func(m *fsm.Machine) {
		if _, ok := m.Request("held"); !ok || m.Pending() != 1 {
			t.Error("what it had is lost")
		}
	})
	// The others come back: with their old directories they are of another cluster, with empty ones they are taken in.
	for _, other := range c.ids {
		if other == id {
			continue
		}
		if err := os.RemoveAll(c.dirs[other]); err != nil {
			t.Fatal(err)
		}
		c.startThese(other)
	}
	c.until("three voters", func() bool {
		n := 0
		for _, m := range s.Members() {
			if m.Voter {
				n++
			}
		}
		return n == 3
	})
	c.agree()
}
