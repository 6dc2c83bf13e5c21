package storage

import (
	"errors"
	"math"

	"iop/fsm"
)

// The commands of a request.

func (d *decoder) readAdmit(f *fields) *fsm.Admit {
	c := d.admit()
	for f.next() {
		switch f.number {
		case 1:
			c.Request = fsm.RequestID(f.bytes())
		case 2:
			if copy(c.Fingerprint[:], f.bytes()) != len(c.Fingerprint) || len(f.data) != len(c.Fingerprint) {
				f.err = errors.New("fingerprint is not 16 bytes")
			}
		case 3:
			c.Model = name[fsm.ModelID](d, f.bytes())
		case 4:
			c.Class = fsm.Class(f.upTo(math.MaxUint8))
		case 5:
			c.InputTokens = int64(f.uint())
		case 6:
			c.Needs = fsm.Needs(f.upTo(math.MaxUint32))
		case 7:
			c.MaxWait = fsm.Time(f.uint())
		case 8:
			c.Provider = name[fsm.ProviderID](d, f.bytes())
		case 9:
			c.Served = string(f.bytes())
		case 10:
			c.Principal = name[fsm.PrincipalID](d, f.bytes())
		case 11:
			c.Token = name[string](d, f.bytes())
		case 12:
			c.Metered = f.bool()
		case 13:
			c.Place = fsm.Enqueue(f.uint())
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readRelease(f *fields) *fsm.Release {
	c := d.release()
	for f.next() {
		switch f.number {
		case 1:
			c.Lease = fsm.LeaseID(f.uint())
		case 2:
			c.Reason = fsm.Reason(f.upTo(math.MaxUint8))
		case 3:
			c.Requeue = f.bool()
		case 4:
			inner := &fields{rest: f.bytes()}
			c.Usage = readUsage(inner)
			f.err = errors.Join(f.err, inner.err)
		case 5:
			c.Unsent = f.bool()
		default:
			f.unknown()
		}
	}
	return c
}

func readUsage(f *fields) (u fsm.Usage) {
	for f.next() {
		switch f.number {
		case 1:
			u.Told = f.bool()
		case 2:
			u.Prompt = int64(f.uint())
		case 3:
			u.Completion = int64(f.uint())
		case 4:
			u.Cached = int64(f.uint())
		case 5:
			u.Reasoning = int64(f.uint())
		default:
			f.unknown()
		}
	}
	return u
}

func (d *decoder) readCancel(f *fields) *fsm.Cancel {
	c := &fsm.Cancel{}
	for f.next() {
		switch f.number {
		case 1:
			c.Request = fsm.RequestID(f.bytes())
		default:
			f.unknown()
		}
	}
	return c
}
