package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// sealed puts a checksum on everything that the log file holds, and verifies it whenever something is read: bbolt has
// checksums for its two meta pages only, so that elsewhere a flipped bit would become another history.
//
//	an entry:  Extensions …  | 1 | CRC-32C, 4 bytes LE, of index term type length-of-data data extensions
//	a value:   …             | 1 | CRC-32C, 4 bytes LE, of key 0 value
//
// Directories of format 2 have it, those of format 1 have not (identity.go).
type sealed struct {
	logFile
	path string // of the file, for errors
}

const (
	sealVersion = 1
	sealSize    = 1 + 4
)

// seal returns b with its checksum, in bytes of its own.
func seal(b []byte, sum uint32) []byte {
	out := append(make([]byte, 0, len(b)+sealSize), b...)
	return binary.LittleEndian.AppendUint32(append(out, sealVersion), sum)
}

// unseal splits what seal put together; false if that can't be.
func unseal(b []byte) ([]byte, uint32, bool) {
	n := len(b) - sealSize
	if n < 0 || b[n] != sealVersion {
		return nil, 0, false
	}
	return b[:n:n], binary.LittleEndian.Uint32(b[n+1:]), true
}

// entrySum does not cover AppendedAt, which only says how long an entry is kept.
func entrySum(l *raft.Log, extensions []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var head [32]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	binary.LittleEndian.PutUint64(head[16:], uint64(l.Type))
	binary.LittleEndian.PutUint64(head[24:], uint64(len(l.Data)))
	return crc32.Update(crc32.Update(crc32.Checksum(head[:], table), table, l.Data), table, extensions)
}

func valueSum(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(crc32.Checksum(key, table), table, []byte{0}), table, value)
}

func (s *sealed) damaged(what string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; %s", ErrDamaged, s.path, fmt.Sprintf(what, args...), wayOut)
}

func (s *sealed) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s *sealed) StoreLogs(logs []*raft.Log) error {
	out := make([]*raft.Log, len(logs))
	for i, l := range logs { // copies: raft goes on using its own
		c := *l
		c.Extensions = seal(l.Extensions, entrySum(l, l.Extensions))
		out[i] = &c
	}
	return s.logFile.StoreLogs(out)
}

func (s *sealed) GetLog(index uint64, l *raft.Log) error {
	err := s.logFile.GetLog(index, l)
	switch {
	case errors.Is(err, raft.ErrLogNotFound):
		return err
	case err != nil:
		return s.damaged("log entry %d can't be read (%v)", index, err)
	}
	extensions, sum, ok := unseal(l.Extensions)
	if !ok || l.Index != index || sum != entrySum(l, extensions) {
		return s.damaged("the checksum of log entry %d does not match", index)
	}
	l.Extensions = extensions
	return nil
}

func (s *sealed) Set(key, value []byte) error {
	return s.logFile.Set(key, seal(value, valueSum(key, value)))
}

func (s *sealed) Get(key []byte) ([]byte, error) {
	b, err := s.logFile.Get(key)
	if err != nil {
		return nil, err
	}
	value, sum, ok := unseal(b)
	if !ok || sum != valueSum(key, value) {
		return nil, s.damaged("the checksum of the value %q does not match", key)
	}
	return value, nil
}

func (s *sealed) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (s *sealed) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, s.damaged("the value %q has %d bytes, not 8", key, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}
