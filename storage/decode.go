package storage

import (
	"errors"
	"fmt"

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
