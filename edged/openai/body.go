package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Bounds of reading a request's body.
const (
	bodyFirstBytes  = 64 << 10 // set aside at once, whatever length is announced
	bodyGrowth      = 4        // then how much more at a time, so that an announced length alone costs nothing
	bodyKeptBytes   = 64 << 10 // a larger buffer is not kept for the next request
	bodyBytesPerSec = 32 << 10 // each such many bytes give a second more
)

// errLeft: the client left while it sent its body.
var errLeft = errors.New("the client left")

// readBody reads the whole body into x.body. Its length is bounded, and so is the time: bodyTimeout and a second more
// per bodyBytesPerSec received.
func (x *exchange) readBody(r *http.Request) *failure {
	limit := x.s.o.MaxBodyBytes
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	x.body = x.body[:0]
	if r.ContentLength == 0 {
		return nil
	}
	size := r.ContentLength
	if size < 0 {
		size = limit + 1
	}
	x.body = grow(x.body, min(size, bodyFirstBytes))
	began := time.Now()
	x.setReadDeadline(began.Add(x.s.o.BodyTimeout))
	for extended := 0; ; {
		if len(x.body) == cap(x.body) && int64(len(x.body)) < size {
			room := min(size, int64(bodyGrowth*len(x.body)))
			if !x.charge(room) {
				x.discard()
				return tooManyBodies()
			}
			x.body = grow(x.body, room)
		}
		n, err := r.Body.Read(x.body[len(x.body):min(int64(cap(x.body)), size)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case int64(len(x.body)) > limit:
			return tooLarge(limit)
		case err == io.EOF:
			x.setReadDeadline(time.Time{})
			return nil
		case err != nil:
			return x.unread(err)
		}
		if seconds := len(x.body) / bodyBytesPerSec; seconds > extended {
			extended = seconds
			x.setReadDeadline(began.Add(x.s.o.BodyTimeout + time.Duration(seconds)*time.Second))
		}
	}
}

// charge has a larger body counted among all that are held at the same time; false: they would be too large together.
// Memory is then the next thing to run out, and would take every running request along.
func (x *exchange) charge(room int64) bool {
	more := room - max(x.charged, bodyFirstBytes)
	if more <= 0 {
		return true
	}
	if x.s.bodies.Add(more) > x.s.o.MaxBodies {
		x.s.bodies.Add(-more)
		return false
	}
	x.charged = room
	return true
}

// uncharge tells that the body is let go of.
func (x *exchange) uncharge() {
	if x.charged > 0 {
		x.s.bodies.Add(bodyFirstBytes - x.charged)
		x.charged = 0
	}
}

func (x *exchange) unread(err error) *failure {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &failure{kind: kindSlow, message: fmt.Sprintf(
			"The body did not arrive in time: %d bytes in %v. Send it faster.", len(x.body), x.s.o.BodyTimeout)}
	}
	x.err = fmt.Errorf("%w: read body: %w", errLeft, err)
	return &failure{kind: kindMalformed, message: "The body ended too early."}
}

func tooManyBodies() *failure {
	return &failure{kind: kindOverloaded, message: "The gateway holds as many large requests as it can at the moment. Try again after the time in Retry-After."}
}

func tooLarge(limit int64) *failure {
	return &failure{kind: kindTooLarge, message: fmt.Sprintf(
		"The body is larger than %d bytes. Send less, or ask the operator to raise max_body_bytes.", limit)}
}

// Bounds of reading on after a body turned out to be too large.
const (
	discardBytes = 1 << 20
	discardTime  = 500 * time.Millisecond
)

// discard reads on for a little, so that a client that is still sending gets to read why its request was refused. Who
// closes with bytes unread resets the connection, and the reset can overtake the answer.
func (x *exchange) discard() {
	if len(x.r.Header["Expect"]) > 0 && len(x.body) == 0 {
		return // it asked before sending: reading would invite it to
	}
	x.setReadDeadline(time.Now().Add(discardTime))
	_, _ = io.CopyN(io.Discard, x.r.Body, discardBytes) // the request is refused already
}

// boundUnread bounds how long net/http reads on through a body that the handler did not read: it does so before it
// sends the answer, and without a bound for a client that sends none of it. Reading the body sets bounds of its own.
func boundUnread(w http.ResponseWriter) { setReadDeadline(w, time.Now().Add(discardTime)) }

// boundAnswer bounds how long a client may take to read an answer that takes no slot. Answers of backends have their
// patience.
func (s *Server) boundAnswer(w http.ResponseWriter) {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(s.o.StallTimeout))
	}
}

// grow returns b with room for size bytes in all.
func grow(b []byte, size int64) []byte {
	if int64(cap(b)) >= size {
		return b
	}
	return append(make([]byte, 0, size), b...)
}

func (x *exchange) setReadDeadline(t time.Time) { setReadDeadline(x.w, t) }

// setReadDeadline bounds reads of the client's connection; a writer that can't is left alone.
func setReadDeadline(w http.ResponseWriter, t time.Time) {
	if d, ok := w.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = d.SetReadDeadline(t)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(t)
}
