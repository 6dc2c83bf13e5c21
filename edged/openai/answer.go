package openai

import (
	"net/http"
	"strings"
	"time"
)

// Bounds of an answer.
const (
	bufferedMax = 256 << 10 // a JSON answer up to this is sent in one piece, with its length
	bufferKept  = 64 << 10  // a larger buffer is not kept for the next request
)

// answer is what becomes of a backend's answer.
//
//	              ┌─ event stream, or not JSON ──▶ live: passed on as it arrives
//	Head ─────────┤
//	              └─ JSON, 429 or 503 ──▶ buffered ──over 256 KiB──▶ live
//	                                         └── End ──▶ sent whole with its length, or held when another one may run it
type answer struct {
	status int // 0 = no head yet
	header http.Header
	buffer []byte
	reader reader
	live   bool // the head has gone to the client
	early  bool // the client has got the head of a stream while it waited
	queued bool // it has waited

	dispatched Dispatched
	complete   bool // it has come to its orderly end
	firstByte  time.Duration
	writeErr   error
	deadline   time.Time // for the client to take bytes
	held       held
}

// held is the answer of a backend that did not run the request.
type held struct {
	status int
	header http.Header
	body   []byte
	cause  string
}

// keep takes over the buffers of an answer that has ended.
func (a *answer) keep(old *answer) {
	if cap(old.buffer) <= bufferKept {
		a.buffer = old.buffer[:0]
	}
	r := &old.reader
	if cap(r.out) <= bufferKept {
		a.reader.out = r.out[:0]
	}
	a.reader.from, a.reader.to, a.reader.held = r.from[:0], r.to[:0], r.held[:0]
	if cap(r.sieve.rest) <= bufferKept && cap(r.sieve.out) <= bufferKept {
		a.reader.sieve.rest, a.reader.sieve.out = r.sieve.rest[:0], r.sieve.out[:0]
	}
}

// begin prepares for another backend's answer.
func (a *answer) begin() {
	a.status, a.header, a.buffer = 0, nil, a.buffer[:0]
	a.reader.reset(false, "", "")
}

// committed tells whether something of the backend's answer has gone to the client.
func (a *answer) committed() bool { return a.live }

// hold keeps the answer of a backend that did not run the request, for the case that nobody else can.
func (a *answer) hold(cause string) {
	a.held.cause = cause
	if a.status == 0 {
		return
	}
	a.held = held{status: a.status, header: a.header, body: append([]byte(nil), a.buffer...), cause: cause}
}

// restore makes the held answer the one to be sent.
func (a *answer) restore() {
	a.status, a.header, a.buffer = a.held.status, a.held.header, append(a.buffer[:0], a.held.body...)
	a.dispatched, a.complete = DispatchedNo, true
}

// Head takes the backend's status and headers.
func (x *exchange) Head(status int, h http.Header) error {
	a := &x.answer
	a.status, a.header = status, h
	a.firstByte = time.Since(x.began)
	x.traceHead(status)
	kind := mediaType(h)
	events := kind == "text/event-stream"
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	served := x.out.Grant.Served
	if encoding := first(h["Content-Encoding"]); encoding != "" && !strings.EqualFold(encoding, "identity") || !events && !isJSON {
		// What can't be read is passed as it is, under the reader's eyes but without a document in it.
		a.reader.reset(false, x.name, x.name)
		a.reader.doc = docOff
	} else {
		a.reader.reset(events, served, x.name)
		a.reader.sieve.on = events && x.hides
	}
	if x.resp != nil && x.headResponse(status, events) {
		return nil
	}
	switch {
	case a.early && !(events && status < http.StatusBadRequest):
		return nil // it will be told as an event
	case a.early:
		a.live = true
		return nil
	case isJSON, status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return nil // it is buffered
	}
	x.goLive(!events && len(a.reader.from) == 0)
	return nil
}

// goLive sends the head. Its length is only right if the body is passed unchanged.
func (x *exchange) goLive(sameLength bool) {
	a := &x.answer
	h := x.w.Header()
	pass(h, a.header)
	if x.resp != nil && x.resp.active {
		delete(h, "Content-Encoding")
		streamHeader(h)
	}
	if n := a.header["Content-Length"]; sameLength && len(n) == 1 {
		h["Content-Length"] = n
	}
	if a.reader.events {
		noBuffering(h)
	}
	x.ours(h)
	x.granted(h, DispatchedYes)
	x.fragile(true)
	x.w.WriteHeader(a.status)
	a.live = true
}

// Data takes the next bytes of the backend's answer.
func (x *exchange) Data(p []byte) error {
	a := &x.answer
	out := a.reader.write(p)
	if x.resp != nil && x.resp.active {
		return x.dataResponse(out)
	}
	if a.live {
		if len(out) == 0 {
			return nil
		}
		return x.put(out)
	}
	a.buffer = append(a.buffer, out...)
	if len(a.buffer) <= bufferedMax {
		return nil
	}
	if a.early {
		a.buffer = a.buffer[:bufferedMax] // it only becomes an error event
		return nil
	}
	x.goLive(false)
	err := x.put(a.buffer)
	a.buffer = nil
	return err
}

// Flush sends what the client was not sent yet.
func (x *exchange) Flush() error {
	if !x.answer.live {
		return nil
	}
	return x.flush()
}

// put gives bytes to the client's connection; they go out with the next flush, or with the end. The client must take
// them within the stall timeout.
func (x *exchange) put(p []byte) error {
	x.patience()
	if _, err := x.w.Write(p); err != nil {
		x.answer.writeErr = err
		return err
	}
	return nil
}

// send passes bytes to the client at once.
func (x *exchange) send(p []byte) error {
	if err := x.put(p); err != nil {
		return err
	}
	return x.flush()
}

func (x *exchange) flush() error {
	var err error
	switch f := x.w.(type) {
	case interface{ FlushError() error }:
		err = f.FlushError()
	case http.Flusher:
		f.Flush()
	}
	if err != nil {
		x.answer.writeErr = err
	}
	return err
}

// patience moves the deadline for writing on, but not for each piece.
func (x *exchange) patience() {
	a, stall := &x.answer, x.s.o.StallTimeout
	now := time.Now()
	if a.deadline.Sub(now) > stall-stall/8 {
		return
	}
	a.deadline = now.Add(stall)
	if d, ok := x.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(a.deadline)
	}
}

// keepAlive gives a waiting stream a sign of life: its head, if it has none yet, and a comment, or
// what clients of its API take for one.
func (x *exchange) keepAlive(position int) {
	a := &x.answer
	if !a.early {
		a.early = true
		h := x.w.Header()
		streamHeader(h)
		x.ours(h)
		x.fragile(true)
		x.w.WriteHeader(http.StatusOK)
	}
	if x.resp != nil {
		x.waitResponse()
		return
	}
	if x.messages != nil {
		x.messages.ping()
		return
	}
	b := append(a.buffer[:0], ": queued"...)
	if position > 0 {
		b = append(b, " position="...)
		b = appendInt(b, position)
	}
	a.buffer = append(b, "\n\n"...)
	_ = x.send(a.buffer) // the context ends if the client has left
	a.buffer = a.buffer[:0]
}
