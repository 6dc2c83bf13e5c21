package storage

import (
	"errors"

	"iop/fsm"
)

// The commands by which a node joins.

func (d *decoder) readAddJoin(f *fields) *fsm.AddJoin {
	c := &fsm.AddJoin{}
	for f.next() {
		switch f.number {
		case 1:
			c.Token = f.hash()
		case 2:
			c.Node = name[fsm.NodeID](d, f.bytes())
		case 3:
			c.TTL = fsm.Time(f.uint())
		default:
			f.unknown()
		}
	}
	return c
}

func readRedeemJoin(f *fields) *fsm.RedeemJoin {
	c := &fsm.RedeemJoin{}
	for f.next() {
		switch f.number {
		case 1:
			c.Token = f.hash()
		case 2:
			c.NodeToken = f.hash()
		default:
			f.unknown()
		}
	}
	return c
}

// hash reads the hash of a token.
func (f *fields) hash() (h fsm.TokenHash) {
	b := f.bytes()
	if len(b) != len(h) && f.err == nil {
		f.err = errors.New("hash of a token is not 32 bytes")
	}
	copy(h[:], b)
	return h
}
