package storage

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// bindingKey is where the log says whose it is: "CLUSTER/REPLICA". Without it, the log of another directory would be
// taken for ours as long as there is no snapshot to compare with.
const bindingKey = "iop.directory"

func (id *identity) binding() string { return id.Cluster + "/" + id.Replica }

// bind writes into a new log whose it is.
func (id *identity) bind(log raft.StableStore) error {
	if err := log.Set([]byte(bindingKey), []byte(id.binding())); err != nil {
		return fmt.Errorf("bind the log to its directory: %w", err)
	}
	return nil
}

// bound refuses the log of another directory.
func (id *identity) bound(dir string, log raft.StableStore) error {
	if id.Format < sealedFormat {
		return nil
	}
	whose, err := log.Get([]byte(bindingKey))
	switch {
	case errors.Is(err, ErrDamaged):
		return err
	case err != nil:
		return fmt.Errorf("%w: %s/%s does not say whose it is (%w); %s", ErrDamaged, dir, logDB, err, wayOut)
	case string(whose) != id.binding():
		return fmt.Errorf("%w: in %s, %s is that of %s and %s that of %s; put back the file that was exchanged, or restore the directory from a backup",
			ErrDamaged, dir, logDB, whose, identityFile, id.binding())
	}
	return nil
}

// coherent refuses a directory whose log and snapshots do not make one history.
func (id *identity) coherent(dir string, snapshot *raft.SnapshotMeta, first, last uint64, log logFile) error {
	taken := uint64(0)
	if snapshot != nil {
		taken = snapshot.Index
	}
	switch {
	case last == 0 && id.State == stateJoining && snapshot == nil:
		return nil // it was taken into a cluster and has nothing of it yet
	case snapshot != nil && last < taken && installed(log) == snapshot.ID:
		return nil // the leader's snapshot took the log's place (installed.go)
	case last == 0:
		return fmt.Errorf("%w: the log in %s is empty although the replica was in use; %s", ErrDamaged, dir, wayOut)
	case first > taken+1:
		return fmt.Errorf("%w: the log in %s begins at %d but the newest snapshot ends at %d; put the missing snapshot back, or restore the directory from a backup",
			ErrDamaged, dir, first, taken)
	case last < taken: // what is in a snapshot of its own was in the log before
		return fmt.Errorf("%w: %s/%s ends at entry %d but the newest snapshot at %d: it is older than the snapshot; put the newer log back, or restore the directory from a backup",
			ErrDamaged, dir, logDB, last, taken)
	}
	return sameTerms(dir, snapshot, first, last, log)
}

// sameTerms compares the terms that log, snapshot and raft's state name.
func sameTerms(dir string, snapshot *raft.SnapshotMeta, first, last uint64, log logFile) error {
	var l raft.Log
	if snapshot != nil && snapshot.Index >= first {
		if err := log.GetLog(snapshot.Index, &l); err != nil {
			return fmt.Errorf("read log entry %d: %w", snapshot.Index, err)
		}
		if l.Term != snapshot.Term {
			return fmt.Errorf("%w: in %s, entry %d is of term %d in the log and of term %d in snapshot %s: they are not of one history; restore the directory from a backup",
				ErrDamaged, dir, l.Index, l.Term, snapshot.Term, snapshot.ID)
		}
	}
	if err := log.GetLog(last, &l); err != nil {
		return fmt.Errorf("read log entry %d: %w", last, err)
	}
	term, err := log.GetUint64([]byte("CurrentTerm"))
	if err != nil && !errors.Is(err, ErrDamaged) { // raft's own "not found"
		term, err = 0, nil
	}
	if err == nil && term < l.Term {
		err = fmt.Errorf("%w: %s/%s: its term is %d but entry %d is of term %d; restore the directory from a backup",
			ErrDamaged, dir, logDB, term, last, l.Term)
	}
	return err
}

// examine makes sure that the log, the identity and the newest snapshot are whole and make one history, and returns that
// snapshot; nil = there is none. Nothing is written, so that a refused directory stays as it is.
func (id *identity) examine(dir string) (snapshot *raft.SnapshotMeta, err error) {
	path := filepath.Join(dir, logDB)
	if err := verifyPages(path); err != nil {
		return nil, err
	}
	file, err := readLog(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	log := id.sealing(dir, file)
	if err := id.bound(dir, log); err != nil {
		return nil, err
	}
	if snapshot, err = (&snapStore{dir: dir, cluster: id.Cluster}).newest(); err != nil {
		return nil, err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	last, err := log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	taken := uint64(0)
	if snapshot != nil {
		taken = snapshot.Index
	}
	if err := id.coherent(dir, snapshot, first, last, log); err != nil {
		return nil, err
	}
	return snapshot, verifyTail(dir, max(taken+1, first), last, log)
}

// verifyTail reads the entries that will be applied, so that what is wrong with one is said before any is.
func verifyTail(dir string, from, to uint64, log raft.LogStore) error {
	var l raft.Log
	for i := from; i <= to; i++ {
		err := log.GetLog(i, &l)
		if errors.Is(err, ErrDamaged) {
			return err
		}
		if err != nil || l.Index != i {
			return fmt.Errorf("%w: log entry %d in %s/%s can't be read (%w); %s", ErrDamaged, i, dir, logDB, err, wayOut)
		}
	}
	return nil
}
