package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"iop/fsm"
)

// A copy of the vault travels behind the state of a snapshot that a leader sends, and behind that of a backup:
//
//	+---------------------+-----------+----------------+----------+
//	| the file, as it was | SHA-256   | its length     | iopvault |
//	| at one entry        | 32 bytes  | 8 bytes, LE    | 8 bytes  |
//	+---------------------+-----------+----------------+----------+
//
// It is of an entry at or behind that of the state. So it may lack what was dropped since, whose rows go when the entries
// in between are applied. Without stored responses there is none.
const (
	vaultMagic = "iopvault"
	vaultTail  = sha256.Size + 8 + len(vaultMagic)
)

// vaultCopy is a copy on its way.
type vaultCopy struct {
	tx   *bbolt.Tx
	size int64 // with its tail
}

// copy begins a copy; nil = there is nothing to copy. With an index, all writes up to it have been added. Call close.
func (v *vault) copy(index uint64) (*vaultCopy, error) {
	if err := v.flush(index); err != nil {
		return nil, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.db == nil {
		return nil, nil
	}
	tx, err := v.db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", v.path, err)
	}
	return &vaultCopy{tx: tx, size: tx.Size() + int64(vaultTail)}, nil
}

func (c *vaultCopy) write(to io.Writer) error {
	h := sha256.New()
	n, err := c.tx.WriteTo(io.MultiWriter(to, h))
	if err != nil {
		return fmt.Errorf("copy stored responses: %w", err)
	}
	tail := binary.LittleEndian.AppendUint64(h.Sum(nil), uint64(n))
	_, err = to.Write(append(tail, vaultMagic...))
	return err
}

func (c *vaultCopy) close() error { return c.tx.Rollback() }

// follow returns data with the copy behind it. stop ends what it takes.
func (c *vaultCopy) follow(data io.Reader) (all io.Reader, stop func()) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.CloseWithError(c.write(w))
	}()
	return io.MultiReader(data, r), func() {
		_ = r.Close()
		<-done
	}
}

// splitVault moves the copy at the end of a file, if there is one, into a file of its own, verified.
func splitVault(path, to string) (found bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, fmt.Errorf("read snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("read snapshot: %w", err)
	}
	length, ok, err := vaultBefore(f, info.Size())
	if err != nil || !ok {
		return false, err
	}
	start := info.Size() - int64(vaultTail) - length
	if err := writeVault(io.NewSectionReader(f, start, length+int64(vaultTail)), length, to); err != nil {
		return false, err
	}
	if err := f.Truncate(start); err != nil {
		return false, fmt.Errorf("cut snapshot: %w", err)
	}
	return true, f.Sync()
}

// vaultBefore reads the tail of what ends at size: how long the file before it is.
func vaultBefore(f io.ReaderAt, size int64) (length int64, ok bool, err error) {
	tail := make([]byte, 8+len(vaultMagic))
	if size < int64(vaultTail) {
		return 0, false, nil
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return 0, false, fmt.Errorf("read the copy of stored responses: %w", err)
	}
	if string(tail[8:]) != vaultMagic {
		return 0, false, nil
	}
	length = int64(binary.LittleEndian.Uint64(tail))
	if length < 0 || length > size-int64(vaultTail) {
		return 0, false, fmt.Errorf("%w: the copy of stored responses is cut off", ErrDamaged)
	}
	return length, true, nil
}

// writeVault writes a copy of a length, followed by its tail, to a file.
func writeVault(from io.Reader, length int64, to string) (err error) {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	err = readVault(from, length, f)
	return errors.Join(err, f.Sync(), f.Close())
}

// readVault reads a copy of a length and its tail, and verifies it.
func readVault(from io.Reader, length int64, to io.Writer) error {
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(to, h), from, length); err != nil {
		return fmt.Errorf("read the copy of stored responses: %w", err)
	}
	tail := make([]byte, vaultTail)
	if _, err := io.ReadFull(from, tail); err != nil || string(tail[sha256.Size+8:]) != vaultMagic {
		return fmt.Errorf("%w: the copy of stored responses is cut off", ErrDamaged)
	}
	if !bytes.Equal(tail[:sha256.Size], h.Sum(nil)) {
		return fmt.Errorf("%w: the SHA-256 of the copy of stored responses does not match its content", ErrDamaged)
	}
	return nil
}

// replace puts another file in the place of the vault's. What was not put in yet is in the other one.
func (v *vault) replace(path string) error {
	v.flushing.Lock()
	defer v.flushing.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.db != nil {
		if err := v.db.Close(); err != nil {
			return fmt.Errorf("close %s: %w", v.path, err)
		}
		v.db = nil
	}
	if err := os.Rename(path, v.path); err != nil {
		return fmt.Errorf("put the leader's stored responses in place: %w", err)
	}
	if err := syncDir(filepath.Dir(v.path)); err != nil {
		return err
	}
	db, index, err := openVaultFile(v.path, false)
	if err != nil {
		return err
	}
	v.db, v.index, v.queue, v.bytes = db, index, nil, 0
	clear(v.by)
	for id := range v.news {
		v.tell(id)
	}
	return nil
}

// sealVault notes that the vault is that of the state after entry index.
func sealVault(path string, index uint64) error {
	db, _, err := openVaultFile(path, false)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("index"), binary.BigEndian.AppendUint64(nil, index))
	})
	return errors.Join(err, db.Close())
}

// VaultCheck says what a comparison of stored responses with the state found.
type VaultCheck struct {
	Responses int   `json:"responses"`
	Bytes     int64 `json:"bytes"` // of payloads, without overhead
	Pending   int   `json:"pending"`
}

// compareVault compares what is stored with the rows of a state, and verifies every value. The writes are those that are
// in the log only.
func compareVault(v *vault, m *fsm.Machine) (c VaultCheck, err error) {
	var errs []error
	for _, row := range m.Responses() {
		c.Responses++
		p, err := v.read(row.ID, -1)
		if err == nil && p.record == nil {
			err = fmt.Errorf("%w: response %s has no payload", ErrDamaged, row.ID)
		}
		c.Bytes += int64(len(p.record) + len(p.object))
		if err == nil && int64(len(p.object)) != row.Object {
			err = fmt.Errorf("%w: the object of response %s has %d bytes, not %d", ErrDamaged, row.ID, len(p.object), row.Object)
		}
		if err == nil {
			p, err = v.read(row.ID, 0)
		}
		next := int64(0)
		for _, e := range p.events {
			if e.From != next {
				break
			}
			next += e.Count
			c.Bytes += int64(len(e.Bytes))
		}
		if err == nil && next != row.Events {
			err = fmt.Errorf("%w: response %s has %d events in a row, not %d", ErrDamaged, row.ID, next, row.Events)
		}
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}
