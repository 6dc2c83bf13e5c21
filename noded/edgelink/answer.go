package edgelink

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"iop/proto/nodepb"
)

const (
	// holdMax is how long a head, or the last bytes of a body of known length, may wait for what follows at once in
	// nearly every case: body and outcome. It saves two of three writes of a plain answer.
	holdMax = 200 * time.Microsecond
	// copyMax is up to which size a chunk is copied into the write buffer; a larger one goes out beside it.
	copyMax = 16 << 10
)

var errAnswer = errors.New("edgelink: an answer is one head, then data")

// answer writes one run's answer on its data connection. It is reused for the next run.
type answer struct {
	conn net.Conn
	hold *time.Timer // flushes what is held

	mu   sync.Mutex
	buf  []byte // not sent yet
	err  error  // the connection is broken
	head bool   // was written
	left int64  // of the body, by the head's Content-Length; -1 = not known
}

func (a *answer) init(conn net.Conn) {
	a.conn = conn
	a.hold = time.AfterFunc(time.Hour, a.release)
	a.hold.Stop()
}

func (a *answer) stop() { a.hold.Stop() }

func (a *answer) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buf, a.head, a.left = a.buf[:0], false, -1
}

// release sends what was held long enough.
func (a *answer) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.flush()
}

// flush sends what is in the buffer; a is locked.
func (a *answer) flush() error {
	if a.err != nil || len(a.buf) == 0 {
		return a.err
	}
	_, a.err = a.conn.Write(a.buf)
	a.buf = a.buf[:0]
	return a.err
}

// Head implements Answer.
func (a *answer) Head(status int, h http.Header) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.head || status < 100 || status > 999 {
		return errAnswer
	}
	a.head = true
	a.left = contentLength(h)
	a.buf = nodepb.AppendAnswer(a.buf, status, h)
	if a.err == nil {
		a.hold.Reset(holdMax)
	}
	return a.err
}

func contentLength(h http.Header) int64 {
	if v := h["Content-Length"]; len(v) > 0 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// Data implements Answer.
func (a *answer) Data(p []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.head {
		return errAnswer
	}
	if a.err != nil || len(p) == 0 {
		return a.err
	}
	if len(p) > copyMax {
		return a.large(p)
	}
	a.buf = nodepb.AppendChunk(a.buf, p)
	if a.left >= 0 {
		a.left -= int64(len(p))
		if a.left == 0 {
			a.hold.Reset(holdMax)
			return nil
		}
	}
	a.hold.Stop()
	return a.flush()
}

// laterMax bounds what Later keeps.
const laterMax = 32 << 10

// Later takes the next bytes as Data does, but keeps them until Flush or the end, if they are few.
func (a *answer) Later(p []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.head:
		return errAnswer
	case a.err != nil || len(p) == 0:
		return a.err
	case len(p) > copyMax:
		return a.large(p)
	}
	a.buf = nodepb.AppendChunk(a.buf, p)
	if a.left >= 0 {
		a.left -= int64(len(p))
	}
	if len(a.buf) < laterMax {
		return nil
	}
	a.hold.Stop()
	return a.flush()
}

// Flush sends what Later kept, but not the last bytes of a body of known length: the outcome follows them at once.
func (a *answer) Flush() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == 0 {
		a.hold.Reset(holdMax)
		return a.err
	}
	a.hold.Stop()
	return a.flush()
}

// large sends a chunk without copying it.
func (a *answer) large(p []byte) error {
	a.hold.Stop()
	if a.left >= 0 {
		a.left -= int64(len(p))
	}
	a.buf = nodepb.AppendChunkStart(a.buf, len(p))
	parts := net.Buffers{a.buf, p, []byte("\r\n")}
	_, a.err = parts.WriteTo(a.conn)
	a.buf = a.buf[:0]
	return a.err
}

// end sends the outcome: as trailers, or alone if the backend gave no head.
func (a *answer) end(o nodepb.Outcome) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold.Stop()
	if a.head {
		a.buf = nodepb.AppendEnd(a.buf, o)
	} else {
		a.buf = nodepb.AppendOver(a.buf, o)
	}
	return a.flush()
}

// over sends an outcome for a run that did not begin.
func (a *answer) over(o nodepb.Outcome) error { return a.end(o) }
