package e2e

import (
	"os"
	"testing"

	"iop/fsm"
	"iop/storage"
)

// inspect reads the data directory of a stopped edge and checks its invariants.
func inspect(t testing.TB, dir string) *fsm.Machine {
	t.Helper()
	m, _, err := storage.Inspect(dir)
	if err != nil {
		t.Fatalf("inspect %s: %v", dir, err)
	}
	if err := m.Check(); err != nil {
		t.Fatalf("the invariants of %s do not hold: %v", dir, err)
	}
	return m
}

// checkData checks the directory that the stopped edge left, if it ever had one.
func (w *world) checkData() {
	if _, err := os.Stat(w.dataDir()); err != nil {
		return
	}
	m := inspect(w.t, w.dataDir())
	s := m.Snapshot()
	held := uint64(len(m.Leases()))
	if w.grants != 0 && (s.Granted != w.grants || s.Returned != w.grants) {
		w.t.Errorf("granted %d leases, returned %d, want %d each", s.Granted, s.Returned, w.grants)
	}
	if s.Granted != s.Returned+held {
		w.t.Errorf("granted %d leases, returned %d, held %d", s.Granted, s.Returned, held)
	}
}

func leaseID(id uint64) fsm.LeaseID { return fsm.LeaseID(id) }
