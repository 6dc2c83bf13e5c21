package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"iop/fsm"
)

// errVaultInUse says that a running replica has the stored responses open.
var errVaultInUse = errors.New("stored responses are in use")

// stored returns the vault of a directory as it is after the last entry, and the machine of that entry. What the log has
// beyond the file is in memory only; nothing is written. Close it.
func (p *Past) stored(ctx context.Context) (*vault, *fsm.Machine, error) {
	v := &vault{path: filepath.Join(p.dir, vaultDB), by: map[fsm.ResponseID][]*vaultWrite{}, news: map[fsm.ResponseID]chan struct{}{}, kick: make(chan struct{}, 1)}
	switch _, err := os.Stat(v.path); {
	case err == nil:
		if v.db, v.index, err = openVaultFile(v.path, true); err != nil {
			if errors.Is(err, bbolt.ErrTimeout) { //nolint:staticcheck // its new home is another module's
				err = errVaultInUse
			}
			return nil, nil, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, nil, fmt.Errorf("read %s: %w", v.path, err)
	}
	m, err := p.catchUp(ctx, v)
	if err != nil {
		return nil, nil, errors.Join(err, v.letGo())
	}
	return v, m, nil
}

// letGo closes a vault that was only read.
func (v *vault) letGo() error {
	if v.db == nil {
		return nil
	}
	return v.db.Close()
}

// catchUp replays what a vault lacks.
func (p *Past) catchUp(ctx context.Context, v *vault) (*fsm.Machine, error) {
	oldest, err := p.Oldest()
	if err != nil {
		return nil, err
	}
	w, err := p.travel(min(max(v.index, oldest), p.End()))
	if err != nil {
		return nil, err
	}
	if len(w.machine.Responses()) > 0 {
		if err := v.knows(w.machine.Index()); err != nil {
			return nil, err
		}
	}
	w.writes = func(index uint64, writes []fsm.Write) {
		if len(writes) > 0 {
			v.add(index, writes)
		}
	}
	if err := w.to(ctx, p.End(), nil); err != nil {
		return nil, err
	}
	return w.machine, nil
}

// checkStored compares the stored responses with the state after the last entry.
func (p *Past) checkStored(ctx context.Context) (*VaultCheck, error) {
	v, m, err := p.stored(ctx)
	if err != nil {
		return nil, err
	}
	c, err := compareVault(v, m)
	c.Pending = len(v.queue)
	if v.db != nil && err == nil {
		err = v.db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return fmt.Errorf("%w: %s: %w", ErrDamaged, v.path, err)
			}
			return nil
		})
	}
	return &c, errors.Join(err, v.letGo())
}

// exportStored writes a file with the stored responses as they are after the last entry; "" = there are none.
func (p *Past) exportStored(ctx context.Context, dir string) (path string, err error) {
	if _, err := os.Stat(filepath.Join(p.dir, vaultDB)); err == nil {
		path = filepath.Join(dir, vaultDB)
		if err := copyStored(filepath.Join(p.dir, vaultDB), path); err != nil {
			return "", err
		}
	}
	v, err := openVault(dir, nil)
	if err != nil {
		return "", err
	}
	v.start()
	m, err := p.catchUp(ctx, v)
	if err = errors.Join(err, v.stop(p.End())); err != nil {
		return "", err
	}
	if len(m.Responses()) == 0 {
		return "", nil
	}
	return filepath.Join(dir, vaultDB), nil
}

func copyStored(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy stored responses: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy stored responses: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("copy stored responses: %w", err)
	}
	return nil
}
