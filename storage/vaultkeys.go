package storage

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"iop/fsm"
)

// The kinds of values of a response.
const (
	valueRecord = 'r'
	valueObject = 'o'
	valueEvents = 'e'
)

func responseKey(id fsm.ResponseID, kind byte) []byte {
	k := make([]byte, 0, len(id)+10)
	k = append(k, byte(len(id)))
	return append(append(k, id...), kind)
}

func eventsKey(id fsm.ResponseID, from int64) []byte {
	return binary.BigEndian.AppendUint64(responseKey(id, valueEvents), uint64(from))
}

func sealValue(parts ...[]byte) []byte {
	b := make([]byte, 4)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func unsealValue(b []byte) ([]byte, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], crc32.MakeTable(crc32.Castagnoli)) {
		return nil, fmt.Errorf("%w: the checksum of a stored response does not match", ErrDamaged)
	}
	return b[4:], nil
}

// putWrite carries out a write. To carry it out again changes nothing.
func putWrite(b *bbolt.Bucket, w *fsm.Write) error {
	if w.Drop {
		return dropResponse(b, w.Response)
	}
	if w.Record != nil {
		if err := b.Put(responseKey(w.Response, valueRecord), sealValue(w.Record)); err != nil {
			return err
		}
	}
	if w.Object != nil {
		if err := b.Put(responseKey(w.Response, valueObject), sealValue(w.Object)); err != nil {
			return err
		}
	}
	if w.Count == 0 {
		return nil
	}
	return b.Put(eventsKey(w.Response, w.From), sealValue(binary.BigEndian.AppendUint64(nil, uint64(w.Count)), w.Events))
}

func dropResponse(b *bbolt.Bucket, id fsm.ResponseID) error {
	prefix := responseKey(id, 0)[:len(id)+1]
	var keys [][]byte
	c := b.Cursor()
	for k, _ := c.Seek(prefix); k != nil && len(k) > len(prefix) && string(k[:len(prefix)]) == string(prefix); k, _ = c.Next() {
		keys = append(keys, append([]byte(nil), k...))
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
