package storage

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// The primitives of the record encoding: protobuf's wire format, fields in order, zero values left out.

const (
	varintType = protowire.VarintType
	fixedType  = protowire.Fixed64Type
	bytesType  = protowire.BytesType
)

func appendUint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, varintType)
	return protowire.AppendVarint(b, v)
}

func appendBool(b []byte, n protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendUint(b, n, 1)
}

func appendFixed(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, fixedType)
	return protowire.AppendFixed64(b, v)
}

func appendText[T ~string | ~[]byte](b []byte, n protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, bytesType)
	b = protowire.AppendVarint(b, uint64(len(v)))
	return append(b, v...)
}

func appendPacked[T ~uint64](b []byte, n protowire.Number, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	size := 0
	for _, v := range list {
		size += protowire.SizeVarint(uint64(v))
	}
	b = protowire.AppendTag(b, n, bytesType)
	b = protowire.AppendVarint(b, uint64(size))
	for _, v := range list {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return b
}

// appendNested appends a message whose length is known only afterwards: one byte is left for it, which nearly always
// is enough.
func appendNested(b []byte, n protowire.Number, fill func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, n, bytesType)
	start := len(b)
	b = fill(append(b, 0))
	size := len(b) - start - 1
	if size < 0x80 {
		b[start] = byte(size)
		return b
	}
	extra := protowire.SizeVarint(uint64(size)) - 1
	b = append(b, make([]byte, extra)...)
	copy(b[start+1+extra:], b[start+1:start+1+size])
	protowire.AppendVarint(b[:start], uint64(size))
	return b
}

var errTruncated = errors.New("truncated or malformed")

// fields walks the fields of one message. It never allocates; bytes are parts of the input.
type fields struct {
	rest []byte
	err  error

	number protowire.Number
	kind   protowire.Type
	num    uint64 // of varint and fixed
	data   []byte // of bytes
}

func (f *fields) next() bool {
	if f.err != nil || len(f.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		f.err = errTruncated
		return false
	}
	f.number, f.kind = number, kind
	f.rest = f.rest[n:]
	switch kind {
	case varintType:
		f.num, n = protowire.ConsumeVarint(f.rest)
	case fixedType:
		f.num, n = protowire.ConsumeFixed64(f.rest)
	case bytesType:
		f.data, n = protowire.ConsumeBytes(f.rest)
	default:
		f.err = fmt.Errorf("field %d has type %d, which is not used", number, kind)
		return false
	}
	if n < 0 {
		f.err = errTruncated
		return false
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) unknown() {
	f.err = fmt.Errorf("unknown field %d: written by a newer version", f.number)
}

// want tells whether the field has the type that its number should have.
func (f *fields) want(kind protowire.Type) bool {
	if f.kind != kind && f.err == nil {
		f.err = fmt.Errorf("field %d has type %d instead of %d", f.number, f.kind, kind)
	}
	return f.err == nil
}

func (f *fields) uint() uint64 {
	if !f.want(varintType) {
		return 0
	}
	return f.num
}

func (f *fields) fixed() uint64 {
	if !f.want(fixedType) {
		return 0
	}
	return f.num
}

func (f *fields) bool() bool { return f.upTo(1) == 1 }

// upTo returns a number that must not be above limit.
func (f *fields) upTo(limit uint64) uint64 {
	v := f.uint()
	if v > limit && f.err == nil {
		f.err = fmt.Errorf("field %d is %d, at most %d is known", f.number, v, limit)
	}
	return min(v, limit)
}

func (f *fields) bytes() []byte {
	if !f.want(bytesType) {
		return nil
	}
	return f.data
}

// packed appends the numbers of a packed list.
func packed[T ~uint64](f *fields, list []T) []T {
	data := f.bytes()
	for len(data) > 0 {
		v, n := protowire.ConsumeVarint(data)
		if n < 0 {
			f.err = errTruncated
			return nil
		}
		list = append(list, T(v))
		data = data[n:]
	}
	return list
}
