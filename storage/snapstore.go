package storage

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"iop/proto/recordpb"
)

// A snapshot file, snapshots/INDEX-TERM.snap:
//
//	+---------+--------+------------+--------+----------------------+
//	| iopsnap1 | length | SnapshotFile | CRC-32C | state: snapshot.go   |
//	| 8 bytes  | 4, LE  |              | 4, LE   | ends with its hash   |
//	+---------+--------+------------+--------+----------------------+
//
// It gets its name when it is whole and synced. Only the newest is ever restored from: raft's own store would silently
// take an older one if that can't be read, and the log need not reach back to it.
const (
	snapshotMagic  = "iopsnap1"
	snapshotSuffix = ".snap"
	snapshotsKept  = 3
	// snapshotMetaMax bounds the part for raft: the members of a cluster.
	snapshotMetaMax = 1 << 20
)

// snapStore keeps snapshot files for raft.
type snapStore struct {
	dir     string // the data directory
	cluster string // id that the newest must have; "" = any
	// first tells where the log begins, nil = no base is kept
	first func() (uint64, error)
	// log of this replica, to know a snapshot that comes from the leader: installed.go; nil = none comes
	log logFile
	// vault takes the stored responses that come behind such a snapshot; nil = none come
	vault *vault
}

func (s *snapStore) path(name string) string { return filepath.Join(s.dir, snapshotsDir, name) }

func snapshotName(index, term uint64) string {
	return fmt.Sprintf("%020d-%d%s", index, term, snapshotSuffix)
}

// Create begins a snapshot.
func (s *snapStore) Create(_ raft.SnapshotVersion, index, term uint64, members raft.Configuration, membersIndex uint64,
	_ raft.Transport,
) (raft.SnapshotSink, error) {
	name := snapshotName(index, term)
	f, err := os.OpenFile(s.path(name)+temporarySuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create snapshot %s: %w", name, err)
	}
	sink := &snapSink{store: s, name: name, index: index, term: term, file: f, to: bufio.NewWriterSize(f, 64<<10)}
	meta := marshal(&recordpb.SnapshotFile{
		Index: index, Term: term, Configuration: raft.EncodeConfiguration(members), ConfigurationIndex: membersIndex,
	})
	head := append([]byte(snapshotMagic), binary.LittleEndian.AppendUint32(nil, uint32(len(meta)))...)
	head = append(head, meta...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := sink.Write(head); err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return sink, nil
}

// List returns the newest snapshot.
func (s *snapStore) List() ([]*raft.SnapshotMeta, error) {
	names, err := snapshotNames(s.dir)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	meta, from, err := s.Open(names[0])
	if err != nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{meta}, from.Close()
}

// figures tells how large the newest snapshot's file is and when it was written; zeros = there is none.
func (s *snapStore) figures() (bytes int64, at time.Time) {
	names, err := snapshotNames(s.dir)
	if err != nil || len(names) == 0 {
		return 0, at
	}
	info, err := os.Stat(s.path(names[0]))
	if err != nil {
		return 0, at
	}
	return info.Size(), info.ModTime()
}

// Open returns a snapshot's state for reading. The state is verified by who reads it.
func (s *snapStore) Open(name string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil, nil, fmt.Errorf("open snapshot: %w", err)
	}
	meta, size, err := readSnapshotHead(f)
	if err == nil && name != snapshotName(meta.GetIndex(), meta.GetTerm()) {
		err = fmt.Errorf("%w: it is that of entry %d, term %d", ErrDamaged, meta.GetIndex(), meta.GetTerm())
	}
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			return &raft.SnapshotMeta{
				Version: 1, ID: name, Index: meta.GetIndex(), Term: meta.GetTerm(),
				Configuration:      raft.DecodeConfiguration(meta.GetConfiguration()),
				ConfigurationIndex: meta.GetConfigurationIndex(), Size: info.Size() - size,
			}, f, nil
		}
	}
	return nil, nil, errors.Join(fmt.Errorf("open snapshot %s: %w", s.path(name), err), f.Close())
}

// readSnapshotHead reads what precedes the state, and tells its size.
func readSnapshotHead(r io.Reader) (*recordpb.SnapshotFile, int64, error) {
	head := make([]byte, len(snapshotMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(snapshotMagic)]) != snapshotMagic {
		return nil, 0, fmt.Errorf("%w: not a snapshot, or cut off", ErrDamaged)
	}
	n := binary.LittleEndian.Uint32(head[len(snapshotMagic):])
	if n > snapshotMetaMax {
		return nil, 0, fmt.Errorf("%w: head of %d bytes", ErrDamaged, n)
	}
	rest := make([]byte, n+4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, 0, fmt.Errorf("%w: cut off", ErrDamaged)
	}
	head = append(head, rest[:n]...)
	if crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(rest[n:]) {
		return nil, 0, fmt.Errorf("%w: checksum of the head does not match", ErrDamaged)
	}
	var meta recordpb.SnapshotFile
	if err := unmarshal(rest[:n], &meta); err != nil {
		return nil, 0, err
	}
	return &meta, int64(len(head) + 4), nil
}

// snapSink is a snapshot being written.
type snapSink struct {
	store *snapStore
	name  string
	index uint64
	term  uint64
	file  *os.File
	to    *bufio.Writer
	once  sync.Once
	err   error
}

func (s *snapSink) ID() string { return s.name }

func (s *snapSink) Write(b []byte) (int, error) { return s.to.Write(b) }

// Close makes the snapshot valid and removes old ones.
func (s *snapSink) Close() error {
	s.once.Do(func() { s.err = s.finish() })
	return s.err
}

func (s *snapSink) finish() error {
	temporary := s.store.path(s.name) + temporarySuffix
	err := errors.Join(s.to.Flush(), s.file.Sync(), s.file.Close())
	replaces := false
	if err == nil && s.store.vault != nil {
		err = s.store.unpack(temporary)
	}
	if err == nil {
		replaces, err = s.store.outdated(s.index, s.term)
	}
	if err == nil && replaces {
		err = s.store.install(temporary, s.name)
	}
	if err == nil {
		err = os.Rename(temporary, s.store.path(s.name))
	}
	if err == nil {
		err = syncDir(filepath.Dir(temporary))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write snapshot %s: %w", s.name, err), removeIfThere(temporary))
	}
	if replaces {
		if err := replaceLog(s.store.log); err != nil {
			return err
		}
	}
	return s.store.reap()
}

// Cancel removes it.
func (s *snapSink) Cancel() error {
	s.once.Do(func() {
		s.err = errors.Join(s.file.Close(), removeIfThere(s.store.path(s.name)+temporarySuffix))
	})
	return s.err
}

// reap removes the snapshots that nothing needs any more: bases.go.
func (s *snapStore) reap() error {
	names, err := snapshotNames(s.dir)
	if err != nil {
		return err
	}
	first := uint64(math.MaxUint64)
	if s.first != nil {
		if first, err = s.first(); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
	}
	for _, name := range surplus(names, first) {
		if err := removeIfThere(s.path(name)); err != nil {
			return fmt.Errorf("remove old snapshot: %w", err)
		}
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// newest verifies the newest snapshot from its first byte to its last; nil = there is none.
func (s *snapStore) newest() (*raft.SnapshotMeta, error) {
	names, err := snapshotNames(s.dir)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	meta, from, err := s.Open(names[0])
	if err != nil {
		return nil, s.wayOut(names[0], err)
	}
	cluster, img, err := readImage(from)
	if err == nil && s.cluster != "" && cluster != s.cluster {
		err = fmt.Errorf("%w: it is of cluster %s, this directory of cluster %s", ErrDamaged, cluster, s.cluster)
	}
	if err == nil && img.Index > meta.Index {
		err = fmt.Errorf("%w: its state is of entry %d, its head says %d", ErrDamaged, img.Index, meta.Index)
	}
	if err = errors.Join(err, from.Close()); err != nil {
		return nil, s.wayOut(names[0], err)
	}
	return meta, nil
}

// wayOut says what can be done about a snapshot that can't be read.
func (s *snapStore) wayOut(name string, err error) error {
	if errors.Is(err, ErrNewer) {
		return fmt.Errorf("snapshot %s: %w: run that version or a newer one", s.path(name), err)
	}
	return fmt.Errorf("snapshot %s can't be used: %w. Move this file out of the way: if the log still reaches back to the snapshot before, the next start replays from there and nothing is lost, and if not, it says so; then restore the directory from a backup",
		s.path(name), err)
}
