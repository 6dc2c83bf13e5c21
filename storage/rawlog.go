package storage

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/raft"
)

// rawEntry is an entry of the log as the file has it.
type rawEntry struct {
	index   uint64
	term    uint64
	command bool   // else raft's own: a new term, the members
	data    []byte // of a command; valid during the call that gives it

	log raft.Log // as far as its checksum covers it
}

// pastLog is a log that can be read: that of a directory (pastfile.go) or of a running store (pastlive.go).
type pastLog interface {
	bounds() (first, last uint64, err error)
	// each calls fn with the entries from … to in order, and stops at the first error.
	each(from, to uint64, fn func(*rawEntry) error) error
	close() error
}

func (r *rawEntry) take(l *raft.Log) {
	r.index, r.term, r.command, r.data = l.Index, l.Term, l.Type == raft.LogCommand, l.Data
}

// unpack reads the record in which raft-boltdb keeps a raft.Log: MessagePack, a map of field names. It is written out
// here because a million records have to be read in a second or so; a test holds it to raft-boltdb's own.
//
//	0x86 | "Index" n | "Term" n | "Type" n | "Data" bytes | "Extensions" bytes | "AppendedAt" bytes |
func (r *rawEntry) unpack(b []byte) error {
	p := packReader{rest: b}
	l := &r.log
	*l = raft.Log{}
	for range p.mapSize() {
		switch key := p.bytes(); string(key) {
		case "Index":
			l.Index = p.uint()
		case "Term":
			l.Term = p.uint()
		case "Type":
			l.Type = raft.LogType(p.uint())
		case "Data":
			l.Data = p.bytes()
		case "Extensions":
			l.Extensions = p.bytes()
		case "AppendedAt":
			if err := l.AppendedAt.UnmarshalBinary(p.bytes()); err != nil && p.err == nil {
				p.err = err
			}
		default:
			p.err = errPack
		}
	}
	if p.err != nil {
		return p.err
	}
	r.take(l)
	return nil
}

// intact tells whether the entry has the checksum that seal.go gave it.
func (r *rawEntry) intact() bool {
	extensions, sum, ok := unseal(r.log.Extensions)
	return ok && sum == entrySum(&r.log, extensions)
}

var errPack = errors.New("not MessagePack as the log has it")

// packReader reads the part of MessagePack that such records use. After an error it gives zero values.
type packReader struct {
	rest []byte
	err  error
}

func (p *packReader) cut(n int) []byte {
	if p.err != nil || n < 0 || n > len(p.rest) {
		p.err, p.rest = errPack, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *packReader) head() byte {
	if b := p.cut(1); b != nil {
		return b[0]
	}
	return 0xc1 // never used by MessagePack
}

// number reads n bytes, big endian.
func (p *packReader) number(n int) uint64 {
	var full [8]byte
	copy(full[8-n:], p.cut(n))
	return binary.BigEndian.Uint64(full[:])
}

func (p *packReader) mapSize() int {
	switch h := p.head(); {
	case h&0xf0 == 0x80:
		return int(h & 0x0f)
	case h == 0xde:
		return int(p.number(2))
	}
	p.err = errPack
	return 0
}

func (p *packReader) uint() uint64 {
	switch h := p.head(); {
	case h < 0x80:
		return uint64(h)
	case h >= 0xcc && h <= 0xcf: // unsigned
		return p.number(1 << (h - 0xcc))
	case h >= 0xd0 && h <= 0xd3: // signed; none of these fields is negative
		return p.number(1 << (h - 0xd0))
	}
	p.err = errPack
	return 0
}

// bytes reads a text or bytes; nil is empty.
func (p *packReader) bytes() []byte {
	switch h := p.head(); {
	case h&0xe0 == 0xa0:
		return p.cut(int(h & 0x1f))
	case h == 0xc0:
		return nil
	case h == 0xc4 || h == 0xd9:
		return p.cut(int(p.number(1)))
	case h == 0xc5 || h == 0xda:
		return p.cut(int(p.number(2)))
	case h == 0xc6 || h == 0xdb:
		return p.cut(int(p.number(4)))
	}
	p.err = errPack
	return nil
}
