package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"iop/fsm"
)

// decoder turns records into commands. Names that come again and again (models, nodes, providers, edges) are kept once.
type decoder struct {
	names map[string]string
	// slabs of the two kinds that every request has, so that a batch costs one allocation of each
	admits   []fsm.Admit
	releases []fsm.Release
}

// namesMax bounds the names kept; client-chosen model names may be anything.
const namesMax = 1024

func name[T ~string](d *decoder, b []byte) T {
	if len(b) == 0 {
		return ""
	}
	if s, ok := d.names[string(b)]; ok {
		return T(s)
	}
	if d.names == nil || len(d.names) >= namesMax {
		d.names = map[string]string{}
	}
	s := string(b)
	d.names[s] = s
	return T(s)
}

func (d *decoder) admit() *fsm.Admit {
	if len(d.admits) == 0 {
		d.admits = make([]fsm.Admit, 16)
	}
	c := &d.admits[0]
	d.admits = d.admits[1:]
	return c
}

func (d *decoder) release() *fsm.Release {
	if len(d.releases) == 0 {
		d.releases = make([]fsm.Release, 64)
	}
	c := &d.releases[0]
	d.releases = d.releases[1:]
	return c
}

// command decodes a message Command: exactly one field, whose number is the kind.
func (d *decoder) command(b []byte) (fsm.Command, error) {
	outer := fields{rest: b}
	if !outer.next() {
		if outer.err == nil {
			outer.err = errors.New("command without a kind")
		}
		return nil, outer.err
	}
	kind, body := outer.number, outer.bytes()
	if outer.err != nil {
		return nil, outer.err
	}
	if len(outer.rest) > 0 {
		return nil, errors.New("command with two kinds")
	}
	f := &fields{rest: body}
	var c fsm.Command
	switch kind {
	case kindAdmit:
		c = d.readAdmit(f)
	case kindRelease:
		c = d.readRelease(f)
	case kindCancel:
		c = d.readCancel(f)
	default:
		c = d.rare(int(kind), f)
	}
	if f.err != nil {
		return nil, fmt.Errorf("command kind %d: %w", kind, f.err)
	}
	return c, nil
}

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

func (d *decoder) rare(kind int, f *fields) fsm.Command {
	switch kind {
	case int(kindOpenSession):
		return d.readOpenSession(f)
	case int(kindEvict):
		return &fsm.Evict{Request: d.readCancel(f).Request}
	case int(kindEndSession):
		return d.readEndSession(f)
	case int(kindRegisterNode):
		return d.readRegisterNode(f)
	case int(kindNodeReady):
		return d.readNodeReady(f)
	case int(kindLinkLost):
		return d.readLinkLost(f)
	case int(kindLinkReport):
		return d.readLinkReport(f)
	case int(kindSetHealth):
		return d.readSetHealth(f)
	case int(kindDrain):
		return d.readDrain(f)
	case int(kindApplyConfig):
		return d.readApplyConfig(f)
	case int(kindExpire):
		return d.readExpire(f)
	case int(kindAddJoin):
		return d.readAddJoin(f)
	case int(kindRedeemJoin):
		return readRedeemJoin(f)
	case int(kindAnnounce):
		return d.readAnnounce(f)
	case int(kindRaiseLevel):
		return d.readRaiseLevel(f)
	case int(kindDigestCheck):
		return d.readDigestCheck(f)
	case int(kindSubmit), int(kindProgress), int(kindKeep), int(kindForget):
		return d.readResponseCommand(kind, f)
	}
	if c := readNext(kind); c != nil {
		return c
	}
	f.err = errors.New("unknown kind: written by a newer version")
	return nil
}

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
