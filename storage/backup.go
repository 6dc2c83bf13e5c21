package storage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"iop/fsm"
)

// A backup:
//
//	+----------+--------+-------------------+--------+----------------------+
//	| iopback1 | length | head: BackupInfo, | CRC-32C | state: snapshot.go   |
//	| 8 bytes  | 4, LE  | JSON              | 4, LE   | ends with its hash   |
//	+----------+--------+-------------------+--------+----------------------+
//
// It is the state after one entry; the log is not in it. With stored responses the format is 2, the head has the length of
// the state, and a copy of the responses comes behind it: vaultcopy.go.
const (
	backupMagic   = "iopback1"
	backupFormat  = 2
	backupHeadMax = 64 << 10
)

// BackupInfo says what a backup is of.
type BackupInfo struct {
	Format  int       `json:"format"`
	Cluster string    `json:"cluster"` // id
	Replica string    `json:"replica"` // that it was taken from
	Program string    `json:"program"` // version that wrote it
	Index   uint64    `json:"index"`   // of the last entry that is in it
	Term    uint64    `json:"term"`
	Level   uint32    `json:"level"`                  // feature level of the state
	Taken   time.Time `json:"taken"`                  // by the clock of the machine that wrote it
	State   int64     `json:"state_bytes,omitempty"`  // of the state, if something comes behind it
	Stored  int64     `json:"stored_bytes,omitempty"` // of the file with the stored responses; 0 = there are none
}

// Backup writes the state that this replica has now, of one index, while it goes on.
func (s *Store) Backup(to io.Writer) (BackupInfo, error) {
	s.replica.mu.RLock() // nothing is applied meanwhile, so both are of one entry
	img := s.replica.machine.Image()
	stored, err := s.vault.copy(img.Index)
	s.replica.mu.RUnlock()
	info := BackupInfo{Cluster: s.Cluster(), Replica: s.options.Replica, Program: s.options.Version}
	if err != nil {
		return info, err
	}
	if stored == nil {
		return writeBackup(to, img, info, nil)
	}
	info, err = writeBackup(to, img, info, stored)
	return info, errors.Join(err, stored.close())
}

// BackupDirectory writes the state in the directory of a stopped, crashed or copied replica; it is not changed. The
// errors are those of OpenPast.
func BackupDirectory(dir, program string, to io.Writer) (BackupInfo, error) {
	m, info, err := Inspect(dir)
	if err != nil {
		return BackupInfo{}, err
	}
	out := BackupInfo{Cluster: info.Cluster, Replica: info.Replica, Program: program}
	if len(m.Responses()) == 0 {
		return writeBackup(to, m.Image(), out, nil)
	}
	return backupStored(dir, m, out, to)
}

// backupStored writes the backup of a directory with stored responses.
func backupStored(dir string, m *fsm.Machine, info BackupInfo, to io.Writer) (_ BackupInfo, err error) {
	scratch, err := os.MkdirTemp("", "iop-backup-")
	if err != nil {
		return info, fmt.Errorf("make a directory for the stored responses: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	p, err := openPast(dir)
	if err != nil {
		return info, err
	}
	_, err = p.exportStored(context.Background(), scratch)
	if err = errors.Join(err, p.Close()); err != nil {
		return info, err
	}
	v, err := openVault(scratch, nil)
	if err != nil {
		return info, err
	}
	v.start()
	defer func() { err = errors.Join(err, v.stop(0)) }()
	stored, err := v.copy(0)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, stored.close()) }()
	return writeBackup(to, m.Image(), info, stored)
}

func writeBackup(to io.Writer, img *fsm.Image, info BackupInfo, stored *vaultCopy) (BackupInfo, error) {
	var state bytes.Buffer
	if stored != nil {
		if err := writeImage(&state, info.Cluster, img); err != nil {
			return info, err
		}
		info.State, info.Stored = int64(state.Len()), stored.size-int64(vaultTail)
	}
	info.Format, info.Index, info.Term, info.Taken = backupFormat, img.Index, img.Term, time.Now().UTC().Truncate(time.Millisecond)
	info.Level = max(img.Level, fsm.LevelFirst)
	if stored == nil {
		info.Format = 1
	}
	text, err := json.Marshal(info)
	if err != nil {
		return info, fmt.Errorf("encode the head of the backup: %w", err)
	}
	head := append([]byte(backupMagic), binary.LittleEndian.AppendUint32(nil, uint32(len(text)))...)
	head = append(head, text...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := to.Write(head); err != nil {
		return info, fmt.Errorf("write backup: %w", err)
	}
	if stored == nil {
		return info, writeImage(to, info.Cluster, img)
	}
	if _, err := state.WriteTo(to); err != nil {
		return info, fmt.Errorf("write backup: %w", err)
	}
	return info, stored.write(to)
}

// ReadBackup reads a backup to its end and verifies all of it. Errors: ErrDamaged, ErrNewer, and those of from.
func ReadBackup(from io.Reader) (*fsm.Image, BackupInfo, error) {
	img, info, err := readBackup(bufio.NewReader(from), io.Discard)
	if err != nil {
		return nil, info, fmt.Errorf("read backup: %w", err)
	}
	return img, info, nil
}

// readBackup writes the file with the stored responses, if there are some.
func readBackup(from io.Reader, stored io.Writer) (*fsm.Image, BackupInfo, error) {
	info, err := readBackupHead(from)
	if err != nil {
		return nil, info, err
	}
	state := from
	if info.State > 0 {
		state = io.LimitReader(from, info.State)
	}
	cluster, img, err := readImage(state)
	if err == nil && info.State > 0 {
		err = readVault(from, info.Stored, stored)
	}
	switch {
	case err != nil:
		return nil, info, err
	case cluster != info.Cluster || img.Index != info.Index:
		return nil, info, fmt.Errorf("%w: its head is of cluster %s, entry %d, its state of cluster %s, entry %d", errBackupDamaged, info.Cluster, info.Index, cluster, img.Index)
	}
	if m, err := fsm.Restore(img); err != nil {
		return nil, info, fmt.Errorf("%w: %w", errBackupDamaged, err)
	} else if err := m.Check(); err != nil {
		return nil, info, fmt.Errorf("%w: its state is not consistent: %w", errBackupDamaged, err)
	}
	return img, info, nil
}

// errBackupDamaged is ErrDamaged without a word of directories.
var errBackupDamaged = fmt.Errorf("the backup is damaged (%w)", ErrDamaged)

func readBackupHead(from io.Reader) (info BackupInfo, err error) {
	head := make([]byte, len(backupMagic)+4)
	if _, err := io.ReadFull(from, head); err != nil || string(head[:len(backupMagic)]) != backupMagic {
		return info, fmt.Errorf("%w: not a backup, or cut off", errBackupDamaged)
	}
	n := binary.LittleEndian.Uint32(head[len(backupMagic):])
	if n > backupHeadMax {
		return info, fmt.Errorf("%w: head of %d bytes", errBackupDamaged, n)
	}
	rest := make([]byte, n+4)
	if _, err := io.ReadFull(from, rest); err != nil {
		return info, fmt.Errorf("%w: cut off", errBackupDamaged)
	}
	head = append(head, rest[:n]...)
	if crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(rest[n:]) {
		return info, fmt.Errorf("%w: checksum of the head does not match", errBackupDamaged)
	}
	if err := json.Unmarshal(rest[:n], &info); err != nil {
		return info, fmt.Errorf("%w: %w", errBackupDamaged, err)
	}
	switch {
	case info.Format > backupFormat:
		return info, fmt.Errorf("%w: backup of format %d, written by version %q, this one reads %d; use that version or a newer one", ErrNewer, info.Format, info.Program, backupFormat)
	case info.Format < 1 || info.Cluster == "" || (info.Format > 1) != (info.State > 0) || info.Stored < 0:
		return info, fmt.Errorf("%w: its head is incomplete", errBackupDamaged)
	case info.Level > levelMax:
		return info, fmt.Errorf("%w: backup of feature level %d, written by version %q, this one knows %d; use that version or a newer one", ErrNewer, info.Level, info.Program, levelMax)
	}
	return info, nil
}

var errNotEmpty = errors.New("the directory is not empty")
