package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// pastFile is the log of a directory that nobody has open, read without changing it.
type pastFile struct {
	path   string
	sealed bool // its entries have checksums
	db     *bbolt.DB
}

// logsBucket is where raft-boltdb keeps the log, by index in big endian.
const logsBucket = "logs"

// openPastFile opens the log of a directory after everything in it that holds it together was verified, as it is before
// a start.
func openPastFile(dir string, id *identity, snapshot *raft.SnapshotMeta) (*pastFile, error) {
	f := &pastFile{path: filepath.Join(dir, logDB), sealed: id.Format >= sealedFormat}
	if _, err := os.Stat(f.path); err != nil {
		return nil, fmt.Errorf("%w: %w; %s", ErrDamaged, err, wayOut)
	}
	if err := verifyPages(f.path); err != nil {
		return nil, err
	}
	if err := verifyLog(dir, id, snapshot); err != nil {
		return nil, err
	}
	var err error
	f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path, err)
	}
	return f, nil
}

// verifyLog refuses a log that does not belong to the directory or its snapshot.
func verifyLog(dir string, id *identity, snapshot *raft.SnapshotMeta) (err error) {
	bolt, err := readLog(filepath.Join(dir, logDB))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	log := id.sealing(dir, bolt)
	if err := id.bound(dir, log); err != nil {
		return err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return id.coherent(dir, snapshot, first, last, log)
}

// guarded turns what bbolt does with a damaged page (a panic, or a fault of memory) into an error.
func (f *pastFile) guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPages, r)
		}
	}()
	return fn()
}

var errPages = errors.New("its pages contradict each other")

func (f *pastFile) damaged(err error) error {
	return fmt.Errorf("%w: %s: %w; %s", ErrDamaged, f.path, err, wayOut)
}

func (f *pastFile) bounds() (first, last uint64, err error) {
	err = f.guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(logsBucket)).Cursor()
			if k, _ := c.First(); len(k) == 8 {
				first = binary.BigEndian.Uint64(k)
			}
			if k, _ := c.Last(); len(k) == 8 {
				last = binary.BigEndian.Uint64(k)
			}
			return nil
		})
	})
	if err != nil {
		return 0, 0, f.damaged(err)
	}
	return first, last, nil
}

func (f *pastFile) each(from, to uint64, fn func(*rawEntry) error) error {
	var failed error // of fn: it is the caller's, not the file's
	err := f.guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte(logsBucket)).Cursor()
			want := from
			var r rawEntry
			for k, v := c.Seek(binary.BigEndian.AppendUint64(nil, from)); want <= to; k, v = c.Next() {
				if len(k) != 8 || binary.BigEndian.Uint64(k) != want {
					return fmt.Errorf("log entry %d is missing", want)
				}
				if err := r.unpack(v); err != nil {
					return fmt.Errorf("log entry %d: %w", want, err)
				}
				if r.index != want || f.sealed && !r.intact() {
					return fmt.Errorf("the checksum of log entry %d does not match", want)
				}
				if failed = fn(&r); failed != nil {
					return nil
				}
				want++
			}
			return nil
		})
	})
	if err != nil {
		return f.damaged(err)
	}
	return failed
}

func (f *pastFile) close() error {
	if f.db == nil {
		return nil
	}
	if err := f.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.path, err)
	}
	return nil
}
