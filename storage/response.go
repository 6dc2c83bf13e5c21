package storage

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"iop/fsm"
	"iop/proto/recordpb"
)

// The commands and rows of stored responses. Payloads are never told: they are what clients wrote and were told.

func appendPayload(b []byte, n protowire.Number, p *fsm.Payload) []byte {
	if p.Record == nil && p.Object == nil && p.Events == nil && p.Count == 0 {
		return b
	}
	return appendNested(b, n, func(b []byte) []byte {
		b = appendText(b, 1, p.Record)
		b = appendText(b, 2, p.Object)
		b = appendText(b, 3, p.Events)
		return appendUint(b, 4, uint64(p.Count))
	})
}

func appendResponseCommand(b []byte, c fsm.Command) []byte {
	switch c := c.(type) {
	case *fsm.Submit:
		return appendNested(b, kindSubmit, func(b []byte) []byte {
			b = appendText(b, 1, c.Response)
			b = appendNested(b, 2, func(b []byte) []byte { return appendAdmit(b, &c.Request) })
			return appendPayload(b, 3, &c.Payload)
		})
	case *fsm.Progress:
		return appendNested(b, kindProgress, func(b []byte) []byte {
			b = appendUint(appendText(b, 1, c.Response), 2, uint64(c.Lease))
			return appendPayload(appendUint(b, 3, uint64(c.Status)), 4, &c.Payload)
		})
	case *fsm.Keep:
		return appendNested(b, kindKeep, func(b []byte) []byte {
			b = appendText(appendText(b, 1, c.Response), 2, c.Principal)
			return appendPayload(appendUint(b, 3, uint64(c.Status)), 4, &c.Payload)
		})
	case *fsm.Forget:
		return appendNested(b, kindForget, func(b []byte) []byte { return appendText(b, 1, c.Response) })
	}
	return appendNodeCommand(b, c)
}

func (d *decoder) readResponseCommand(kind int, f *fields) fsm.Command {
	switch kind {
	case int(kindSubmit):
		return d.readSubmit(f)
	case int(kindProgress):
		return readProgress(f)
	case int(kindKeep):
		return d.readKeep(f)
	}
	c := &fsm.Forget{}
	for f.next() {
		if f.number == 1 {
			c.Response = fsm.ResponseID(f.bytes())
		} else {
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readSubmit(f *fields) *fsm.Submit {
	c := &fsm.Submit{}
	for f.next() {
		switch f.number {
		case 1:
			c.Response = fsm.ResponseID(f.bytes())
		case 2:
			inner := &fields{rest: f.bytes()}
			c.Request = *d.readAdmit(inner)
			f.err = errors.Join(f.err, inner.err)
		case 3:
			c.Payload = readPayload(f)
		default:
			f.unknown()
		}
	}
	return c
}

func readProgress(f *fields) *fsm.Progress {
	c := &fsm.Progress{}
	for f.next() {
		switch f.number {
		case 1:
			c.Response = fsm.ResponseID(f.bytes())
		case 2:
			c.Lease = fsm.LeaseID(f.uint())
		case 3:
			c.Status = fsm.ResponseStatus(f.upTo(math.MaxUint8))
		case 4:
			c.Payload = readPayload(f)
		default:
			f.unknown()
		}
	}
	return c
}

func (d *decoder) readKeep(f *fields) *fsm.Keep {
	c := &fsm.Keep{}
	for f.next() {
		switch f.number {
		case 1:
			c.Response = fsm.ResponseID(f.bytes())
		case 2:
			c.Principal = name[fsm.PrincipalID](d, f.bytes())
		case 3:
			c.Status = fsm.ResponseStatus(f.upTo(math.MaxUint8))
		case 4:
			c.Payload = readPayload(f)
		default:
			f.unknown()
		}
	}
	return c
}

// readPayload copies: what it gives outlives the entry.
func readPayload(outer *fields) (p fsm.Payload) {
	f := &fields{rest: outer.bytes()}
	for f.next() {
		switch f.number {
		case 1:
			p.Record = append([]byte{}, f.bytes()...)
		case 2:
			p.Object = append([]byte{}, f.bytes()...)
		case 3:
			p.Events = append([]byte{}, f.bytes()...)
		case 4:
			p.Count = int64(f.upTo(math.MaxInt64))
		default:
			f.unknown()
		}
	}
	outer.err = errors.Join(outer.err, f.err)
	return p
}

func responseRecord(r *fsm.ResponseRow) *recordpb.ResponseRow {
	return &recordpb.ResponseRow{
		Id: []byte(r.ID), Principal: []byte(r.Principal), Background: r.Background, Status: uint32(r.Status), Cause: uint32(r.Cause),
		Attempt: r.Attempt, Lost: r.Lost, Events: r.Events, Bytes: r.Bytes, Object: r.Object, Since: int64(r.Since), Wall: r.Wall, Order: r.Order,
	}
}

func (w *narrow) response(m *recordpb.ResponseRow) fsm.ResponseRow {
	return fsm.ResponseRow{
		ID: fsm.ResponseID(m.GetId()), Principal: fsm.PrincipalID(m.GetPrincipal()), Background: m.GetBackground(),
		Status: fsm.ResponseStatus(w.byte(m.GetStatus())), Cause: fsm.Refusal(w.byte(m.GetCause())), Attempt: m.GetAttempt(),
		Lost: m.GetLost(), Events: m.GetEvents(), Bytes: m.GetBytes(), Object: m.GetObject(), Since: fsm.Time(m.GetSince()),
		Wall: m.GetWall(), Order: m.GetOrder(),
	}
}

func responseOf(c fsm.Command) fsm.ResponseID {
	switch c := c.(type) {
	case *fsm.Submit:
		return c.Response
	case *fsm.Progress:
		return c.Response
	case *fsm.Keep:
		return c.Response
	case *fsm.Forget:
		return c.Response
	}
	return ""
}

func tellResponse(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.Submit:
		return fmt.Sprintf("background response %s for model %s (%s, %d input tokens, %d bytes)", c.Response, c.Request.Model, c.Request.Class, c.Request.InputTokens, payloadBytes(&c.Payload))
	case *fsm.Progress:
		return fmt.Sprintf("word on response %s: %s, %d events, %d bytes", c.Response, c.Status, c.Count, payloadBytes(&c.Payload))
	case *fsm.Keep:
		return fmt.Sprintf("keeping of response %s: %s, %d bytes", c.Response, c.Status, payloadBytes(&c.Payload))
	case *fsm.Forget:
		return fmt.Sprintf("deletion of response %s", c.Response)
	}
	return tellLink(c)
}

func payloadBytes(p *fsm.Payload) int { return len(p.Record) + len(p.Object) + len(p.Events) }

func responseFields(c fsm.Command) map[string]any {
	switch c := c.(type) {
	case *fsm.Submit:
		return map[string]any{"response": c.Response, "model": c.Request.Model, "class": c.Request.Class.String(), "input_tokens": c.Request.InputTokens, "principal": c.Request.Principal, "payload_bytes": payloadBytes(&c.Payload)}
	case *fsm.Progress:
		return map[string]any{"response": c.Response, "lease": c.Lease, "status": c.Status.String(), "events": c.Count, "payload_bytes": payloadBytes(&c.Payload)}
	case *fsm.Keep:
		return map[string]any{"response": c.Response, "principal": c.Principal, "status": c.Status.String(), "payload_bytes": payloadBytes(&c.Payload)}
	case *fsm.Forget:
		return map[string]any{"response": c.Response}
	}
	return linkFields(c)
}

func (d *difference) response(was, is *fsm.ResponseRow) {
	switch {
	case was == nil:
		d.say("response %s is new, %s, %d bytes", is.ID, is.Status, is.Bytes)
	case is == nil:
		d.say("response %s is not kept any more", was.ID)
	case was.Status != is.Status:
		d.say("response %s was %s, is %s", is.ID, was.Status, is.Status)
	}
	if was != nil && is != nil && is.Lost > was.Lost {
		d.say("response %s: its run was lost", is.ID)
	}
}
