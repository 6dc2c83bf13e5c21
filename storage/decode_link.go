package storage

import (
	"math"

	"iop/fsm"
)

// The commands of sessions and links.

func (d *decoder) readOpenSession(f *fields) *fsm.OpenSession {
	c := &fsm.OpenSession{}
	for f.next() {
		switch f.number {
		case 1:
			c.Edge = name[fsm.EdgeID](d, f.bytes())
		case 2:
			c.Nonce = f.fixed()
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readEndSession(f *fields) *fsm.EndSession {
	c := &fsm.EndSession{}
	for f.next() {
		switch f.number {
		case 1:
			c.Edge = name[fsm.EdgeID](d, f.bytes())
		case 2:
			c.Session = fsm.SessionID(f.uint())
		case 3:
			c.Reason = fsm.Reason(f.upTo(math.MaxUint8))
		case 4:
			c.Alive = f.bool()
		case 5:
			c.Apart = f.bool()
		case 6:
			c.Since = fsm.Time(f.uint())
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readRegisterNode(f *fields) *fsm.RegisterNode {
	c := &fsm.RegisterNode{}
	for f.next() {
		switch f.number {
		case 1:
			c.Node = name[fsm.NodeID](d, f.bytes())
		case 2:
			c.Instance = f.fixed()
		case 3:
			c.Supersede = fsm.Generation(f.uint())
		case 4:
			c.Running = packed(f, c.Running)
		default:
			f.unknown()
		}
	}
	return c
}

// link reads the fields that all commands about a link begin with; false if the field is another.
func (d *decoder) link(f *fields, node *fsm.NodeID, generation *fsm.Generation) bool {
	switch f.number {
	case 1:
		*node = name[fsm.NodeID](d, f.bytes())
	case 2:
		*generation = fsm.Generation(f.uint())
	default:
		return false
	}
	return true
}

func (d *decoder) readNodeReady(f *fields) *fsm.NodeReady {
	c := &fsm.NodeReady{}
	for f.next() {
		if !d.link(f, &c.Node, &c.Generation) {
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readLinkLost(f *fields) *fsm.LinkLost {
	c := &fsm.LinkLost{}
	for f.next() {
		switch {
		case d.link(f, &c.Node, &c.Generation):
		case f.number == 3:
			c.Reason = fsm.Reason(f.upTo(math.MaxUint8))
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readLinkReport(f *fields) *fsm.LinkReport {
	c := &fsm.LinkReport{}
	for f.next() {
		switch {
		case d.link(f, &c.Node, &c.Generation):
		case f.number == 3:
			c.Running = packed(f, c.Running)
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readSetHealth(f *fields) *fsm.SetHealth {
	c := &fsm.SetHealth{}
	for f.next() {
		switch {
		case d.link(f, &c.Node, &c.Generation):
		case f.number == 3:
			c.Provider = name[fsm.ProviderID](d, f.bytes())
		case f.number == 4:
			c.Health = fsm.Health(f.upTo(math.MaxUint8))
		case f.number == 5:
			c.Cause = string(f.bytes())
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readDrain(f *fields) *fsm.Drain {
	c := &fsm.Drain{}
	for f.next() {
		switch f.number {
		case 1:
			c.Node = name[fsm.NodeID](d, f.bytes())
		case 2:
			c.Provider = name[fsm.ProviderID](d, f.bytes())
		case 3:
			c.On = f.bool()
		default:
			f.unknown()
		}
	}
	return c
}
