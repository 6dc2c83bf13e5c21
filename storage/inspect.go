package storage

import (
	"context"
	"errors"
	"fmt"

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

// Inspect opens the directory of a stopped, crashed or copied replica as OpenPast does and returns the machine after the
// last entry of its log, checked.
func Inspect(dir string) (*fsm.Machine, Info, error) {
	m, info, err := inspect(dir)
	if err != nil {
		return nil, info, fmt.Errorf("inspect %s: %w", dir, err)
	}
	return m, info, nil
}

func inspect(dir string) (m *fsm.Machine, info Info, err error) {
	p, err := openPast(dir)
	if err != nil {
		return nil, Info{Dir: dir}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	info = p.Info()
	w, err := p.travel(p.End())
	if err != nil {
		return nil, info, err
	}
	from := w.machine.Index()
	if err := w.to(context.Background(), p.End(), nil); err != nil {
		return nil, info, err
	}
	m = w.machine
	info.Term, info.Applied = m.Term(), int(m.Index()-from)
	if err := m.Check(); err != nil {
		return nil, info, fmt.Errorf("%w: the state at entry %d is not consistent: %w", ErrDamaged, m.Index(), err)
	}
	return m, info, nil
}
