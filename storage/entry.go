package storage

import (
	"errors"
	"fmt"
	"hash/crc64"
	"math"

	"iop/fsm"
)

// A log entry is a message Entry of proto/recordpb/record.proto:
//
//	format level term elapsed wall | batch | batch | …
//	                                 │
//	                                 └ session seq ack_below sum | command | command | …
//
// Index and term of the log travel beside it, in raft's own record. It is encoded by hand: commands are encoded when
// they are proposed, straight into the bytes of their batch, and an entry is its batches put together.
const (
	entryFormat      = 1
	entryCommandsMax = 4096
	entryBytesMax    = 256 << 10
	// recordBytesMax bounds what is read as one entry. A single command (a configuration) can be larger than
	// entryBytesMax, and is then alone in its entry.
	recordBytesMax = 16 << 20
	commandMax     = 8 << 20
)

// record is an entry on its way to the log.
type record struct {
	term    uint64
	elapsed fsm.Time
	wall    int64
	batches []*batch
}

// appendRecord encodes an entry.
func appendRecord(b []byte, r *record) []byte {
	b = appendUint(b, 1, entryFormat)
	b = appendUint(b, 2, uint64(r.level()))
	b = appendUint(b, 3, r.term)
	b = appendUint(b, 4, uint64(r.elapsed))
	b = appendUint(b, 5, uint64(r.wall))
	for _, batch := range r.batches {
		b = appendBatch(b, batch)
	}
	return b
}

// level is the feature level that a reader must know.
func (r *record) level() uint32 {
	level := uint32(fsm.LevelFirst)
	for _, b := range r.batches {
		level = max(level, b.front.level, b.back.level)
	}
	return level
}

func (r *record) sizeMax() int {
	n := 64
	for _, b := range r.batches {
		n += b.size() + batchHeaderMax
	}
	return n
}

// commandSum is Batch.sum.
func commandSum(parts ...[]byte) uint64 {
	table := crc64.MakeTable(crc64.ECMA)
	var sum uint64
	for _, p := range parts {
		sum = crc64.Update(sum, table, p)
	}
	return sum
}

// entry decodes an entry. An unknown format, kind or field is an error: what it means can't be guessed.
func (d *decoder) entry(b []byte) (*fsm.Entry, error) {
	if len(b) > recordBytesMax {
		return nil, fmt.Errorf("entry of %d bytes: at most %d are read", len(b), recordBytesMax)
	}
	f := fields{rest: b}
	if !f.next() || f.number != 1 || f.uint() == 0 {
		return nil, errors.New("entry does not begin with its format")
	}
	if f.num != entryFormat {
		return nil, fmt.Errorf("%w: entry format %d, this version reads %d", ErrNewer, f.num, entryFormat)
	}
	e := &fsm.Entry{}
	for f.next() {
		switch f.number {
		case 2:
			if f.upTo(math.MaxUint32) > levelMax {
				return nil, fmt.Errorf("%w: entry of feature level %d, this version knows %d", ErrNewer, f.num, levelMax)
			}
		case 3:
			e.Term = f.uint()
		case 4:
			e.Elapsed = fsm.Time(f.uint())
		case 5:
			e.Wall = int64(f.uint())
		case 6:
			batch, err := d.batch(f.bytes())
			if err != nil {
				return nil, fmt.Errorf("batch %d: %w", len(e.Batches), err)
			}
			e.Batches = append(e.Batches, batch)
		default:
			f.unknown()
		}
	}
	return e, f.err
}

func (d *decoder) batch(b []byte) (fsm.Batch, error) {
	var out fsm.Batch
	f := fields{rest: b}
	for at := b; f.next(); at = f.rest {
		switch f.number {
		case 1:
			out.Session = fsm.SessionID(f.uint())
		case 2:
			out.Seq = f.uint()
		case 3:
			out.AckBelow = f.uint()
		case 4:
			out.Sum = f.fixed()
		case 5:
			if commandSum(at) != out.Sum {
				return out, errors.New("checksum of the commands does not match")
			}
			out.Commands = make([]fsm.Command, 0, countFields(at))
			return d.commands(out, at)
		default:
			f.unknown()
		}
	}
	return out, f.err
}

// countFields returns how many fields there are, at most; each takes two bytes at least.
func countFields(b []byte) int {
	f := fields{rest: b}
	n := 0
	for f.next() {
		n++
	}
	return n
}

// commands decodes the rest of a batch: nothing but commands.
func (d *decoder) commands(out fsm.Batch, b []byte) (fsm.Batch, error) {
	f := fields{rest: b}
	for f.next() {
		if f.number != 5 {
			f.unknown()
			break
		}
		c, err := d.command(f.bytes())
		if err != nil {
			return out, fmt.Errorf("command %d: %w", len(out.Commands), err)
		}
		out.Commands = append(out.Commands, c)
	}
	return out, f.err
}
