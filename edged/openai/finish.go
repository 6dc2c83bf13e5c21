package openai

import (
	"encoding/json"
	"net/http"
	"time"
)

// finish brings the client's answer to its end, now that the lease is on its way back. abort = it must break off.
func (x *exchange) finish() (abort bool) {
	a := &x.answer
	defer func() {
		if !a.deadline.IsZero() && !abort {
			x.endPatience()
		}
	}()
	if x.err != nil && x.fail == nil {
		// Mostly nobody is there any more to read this. But the edge also cuts requests off when it stops.
		x.fail = &failure{kind: kindStopping, dispatched: a.dispatched, message: "The request was cut off: this gateway is stopping. Try again after the time in Retry-After."}
	}
	switch {
	case a.writeErr != nil:
		x.failJob()
		return true
	case x.resp != nil && x.resp.active && a.live && a.complete:
		x.endResponse(a.reader.end())
		if a.writeErr == nil {
			x.fragile(false)
		}
		return a.writeErr != nil
	case a.live && a.complete:
		if rest := a.reader.end(); len(rest) > 0 {
			_ = x.put(rest)
		}
		if a.writeErr == nil {
			x.fragile(false)
		}
		return a.writeErr != nil
	case a.live || a.early:
		return x.breakOff()
	case x.fail != nil:
		x.tellFailure()
		return false
	}
	x.sendWhole()
	return false
}

// endPatience takes the write deadline off a connection that goes on to another request.
func (x *exchange) endPatience() {
	if d, ok := x.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Time{})
	}
}

// sendWhole sends a buffered answer with its length.
func (x *exchange) sendWhole() {
	a := &x.answer
	if x.resp != nil && x.resp.active {
		x.wholeResponse()
		return
	}
	a.buffer = append(a.buffer, a.reader.end()...)
	h := x.w.Header()
	pass(h, a.header)
	if len(a.buffer) > 0 || a.status != http.StatusNoContent && a.status != http.StatusNotModified {
		h["Content-Length"] = []string{string(appendInt(nil, len(a.buffer)))}
	}
	x.ours(h)
	x.granted(h, a.dispatched)
	x.patience()
	x.w.WriteHeader(a.status)
	_, a.writeErr = x.w.Write(a.buffer)
}

// tellFailure answers with an error while the status is still open.
func (x *exchange) tellFailure() {
	h := x.w.Header()
	x.ours(h)
	if x.out.Grant.Lease != 0 {
		x.granted(h, x.fail.dispatched)
	} else if x.model != nil {
		h["X-Iop-Dispatched"] = []string{DispatchedNo.header()}
	}
	switch x.fail.code {
	case kindSlow.code, kindTooLarge.code, kindStopping.code:
		h["Connection"] = []string{"close"}
	}
	if x.fail.code == kindTooLarge.code {
		x.discard()
	}
	x.patience()
	x.fail.write(x.w, x.s.o.Runner.RetryAfter())
}

// breakOff ends an answer whose head the client already has: a stream gets an error event, and then the connection is
// broken, so that nobody can take it for complete: the last chunk is missing, or it is reset (see fragile). What the backend
// has told as an event itself is not told again.
func (x *exchange) breakOff() (abort bool) {
	a := &x.answer
	if x.resp != nil && (x.resp.active || a.early) {
		if x.fail == nil {
			x.fail = x.theirFailure()
		}
		x.failResponse()
		return true
	}
	if waiting := a.early && !a.live; waiting || a.reader.events {
		var b []byte
		if !waiting {
			b = append(append(b, a.reader.end()...), a.reader.close()...)
		}
		if waiting || !a.reader.toldError() {
			b = x.lastWords(b)
		}
		_ = x.send(b)
	}
	return true
}

// lastWords appends the event that says why a stream broke off.
func (x *exchange) lastWords(b []byte) []byte {
	if x.messages != nil {
		return x.messages.lastWords(b)
	}
	b = append(b, "data: "...)
	return append(x.errorEvent(b), "\n\n"...)
}

// errorEvent appends the error as one line: the backend's own, if it answered with one, or ours.
func (x *exchange) errorEvent(b []byte) []byte {
	a := &x.answer
	if x.fail == nil && a.status >= http.StatusBadRequest {
		var own struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(a.buffer, &own) == nil && len(own.Error) > 0 && own.Error[0] == '{' {
			if line, err := json.Marshal(own); err == nil {
				return append(b, line...)
			}
		}
	}
	f := x.fail
	if f == nil {
		f = &failure{kind: kindProvider, message: "The provider answered with status " + string(appendInt(nil, a.status)) + " and no event stream."}
		x.fail = f
	}
	return f.body(b)
}
