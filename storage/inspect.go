package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"iop/fsm"
)

// Info says what Inspect found.
type Info struct {
	Dir           string
	Cluster       string // id
	Replica       string
	Program       string // version that wrote last
	Format        int
	Snapshot      string // file name of the newest; "" = none
	SnapshotIndex uint64
	FirstIndex    uint64 // of the log; 0 = empty
	LastIndex     uint64
	Term          uint64 // the highest known
	Applied       int    // entries applied after the snapshot
}

// Inspect opens the directory of a stopped, crashed or copied replica without changing anything in it, and returns the
// machine after the last entry of its log, checked. Of a replica that is not alone in its cluster, the last entries may
// not be valid: only a majority decides that. The errors are those of Open.
func Inspect(dir string) (*fsm.Machine, Info, error) {
	m, info, err := inspect(dir)
	if err != nil {
		return nil, info, fmt.Errorf("inspect %s: %w", dir, err)
	}
	return m, info, nil
}

func inspect(dir string) (m *fsm.Machine, info Info, err error) {
	info.Dir = dir
	id, err := readIdentity(dir)
	if err != nil {
		return nil, info, err
	}
	if id == nil {
		return nil, info, fmt.Errorf("%w: it has no %s", ErrNotOurs, identityFile)
	}
	info.Cluster, info.Replica, info.Program, info.Format = id.Cluster, id.Replica, id.Program, id.Format
	if id.State != stateReady {
		return nil, info, fmt.Errorf("%w: its first start was not finished, it holds nothing yet", ErrNotOurs)
	}
	lock, err := shareLock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, info, err
	}
	defer func() { err = errors.Join(err, releaseLock(lock)) }()
	m, err = inspectSnapshot(dir, id.Cluster, &info)
	if err != nil {
		return nil, info, err
	}
	if err := inspectLog(dir, m, &info); err != nil {
		return nil, info, err
	}
	if err := m.Check(); err != nil {
		return nil, info, fmt.Errorf("%w: the state at entry %d is not consistent: %w", ErrDamaged, m.Index(), err)
	}
	return m, info, nil
}

// inspectSnapshot returns the machine as of the newest snapshot, or an empty one.
func inspectSnapshot(dir, cluster string, info *Info) (*fsm.Machine, error) {
	names, err := snapshotNames(dir)
	if err != nil || len(names) == 0 {
		return fsm.New(), err
	}
	store := &snapStore{dir: dir}
	meta, from, err := store.Open(names[0])
	if err != nil {
		return nil, store.wayOut(names[0], err)
	}
	r := &replica{cluster: cluster}
	if err := errors.Join(r.restore(from), from.Close()); err != nil {
		return nil, store.wayOut(names[0], err)
	}
	info.Snapshot, info.SnapshotIndex, info.Term = names[0], meta.Index, meta.Term
	return r.machine, nil
}

// inspectLog applies what the log has behind the snapshot.
func inspectLog(dir string, m *fsm.Machine, info *Info) (err error) {
	path := filepath.Join(dir, logDB)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	log, err := raftboltdb.New(raftboltdb.Options{
		Path:        path,
		BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: time.Second},
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if info.FirstIndex, err = log.FirstIndex(); err == nil {
		info.LastIndex, err = log.LastIndex()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := coherent(dir, info.SnapshotIndex, info.FirstIndex, info.LastIndex); err != nil {
		return err
	}
	var d decoder
	for i := info.SnapshotIndex + 1; i <= info.LastIndex; i++ {
		var l raft.Log
		if err := log.GetLog(i, &l); err != nil {
			return fmt.Errorf("%w: read log entry %d: %w", ErrDamaged, i, err)
		}
		info.Term = max(info.Term, l.Term)
		if l.Type != raft.LogCommand {
			continue
		}
		e, err := d.entry(l.Data)
		if err != nil {
			return fmt.Errorf("log entry %d: %w", i, err)
		}
		e.Index, e.Term = l.Index, l.Term
		m.Apply(e)
		info.Applied++
	}
	return nil
}
