package storage

import (
	"errors"
	"math"
	"slices"

	"iop/fsm"
)

// The commands about all of the cluster.

func (d *decoder) readApplyConfig(f *fields) *fsm.ApplyConfig {
	c := &fsm.ApplyConfig{}
	for f.next() {
		switch f.number {
		case 1:
			c.Document = slices.Clone(f.bytes())
		case 2:
			if config, err := unmarshalConfig(f.bytes()); err != nil {
				f.err = err
			} else {
				c.Config = config
			}
		case 3:
			c.Expected = fsm.Revision(f.uint())
		case 4:
			c.Force = f.bool()
		case 5:
			c.Edge = name[fsm.EdgeID](d, f.bytes())
		case 6:
			c.Offer = string(f.bytes())
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readExpire(f *fields) *fsm.Expire {
	c := &fsm.Expire{}
	for f.next() {
		switch f.number {
		case 1:
			c.Term = f.uint()
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readRaiseLevel(f *fields) *fsm.RaiseLevel {
	c := &fsm.RaiseLevel{}
	for f.next() {
		switch f.number {
		case 1:
			c.Level = uint32(f.upTo(math.MaxUint32))
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readDigestCheck(f *fields) *fsm.DigestCheck {
	c := &fsm.DigestCheck{}
	for f.next() {
		switch f.number {
		case 1:
			c.Index = f.uint()
		case 2:
			if copy(c.Digest[:], f.bytes()) != len(c.Digest) || len(f.data) != len(c.Digest) {
				f.err = errors.New("digest is not 32 bytes")
			}
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readAnnounce(f *fields) *fsm.Announce {
	c := &fsm.Announce{}
	for f.next() {
		switch f.number {
		case 1:
			c.Address = string(f.bytes())
		default:
			f.unknown()
		}
	}
	return c
}
