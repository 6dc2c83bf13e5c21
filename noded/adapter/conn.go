package adapter

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"syscall"
	"time"
)

// errHeadTooLarge: the headers of an answer exceed what is read of them.
var errHeadTooLarge = errors.New("the headers of the answer are too large")

// errSwitched: the backend left HTTP although nothing asked it to.
var errSwitched = errors.New("the backend switched protocols unasked")

const (
	readBufferBytes = 4 << 10  // of a connection; bodies are read past it in larger pieces
	keepHeadBytes   = 64 << 10 // a larger scratch buffer is not kept with an idle connection
	unlimited       = -1
)

// conn is one connection to a backend. It is used by one exchange at a time; only abort may be called from beside.
type conn struct {
	socket net.Conn // closing it ends every read and write at once, in TLS as well
	stream net.Conn // the socket, or TLS on it
	raw    syscall.RawConn
	br     *bufio.Reader
	head   []byte // scratch for request heads

	idle      func() error // called before a read that waits, if something reads an answer on; nil for none
	idleErr   error        // what it returned
	headRoom  int          // bytes that may still be read, while headers are
	answered  bool         // a byte of an answer to the running exchange has come
	deadlined bool         // a deadline is set
	idleSince time.Time
}

func newConn(socket, stream net.Conn) *conn {
	c := &conn{socket: socket, stream: stream, headRoom: unlimited}
	c.br = bufio.NewReaderSize(c, readBufferBytes)
	if s, ok := socket.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	return c
}

// Read is what the buffered reader reads from: it keeps the headers' bound and notes that an answer has begun.
func (c *conn) Read(p []byte) (int, error) {
	if c.headRoom == 0 {
		return 0, errHeadTooLarge
	}
	if c.headRoom > 0 {
		p = p[:min(len(p), c.headRoom)]
	}
	n, err := c.read(p)
	if n > 0 {
		c.answered = true
		if c.headRoom > 0 {
			c.headRoom -= n
		}
	}
	return n, err
}

// read reads what is there, or has idle called and waits.
func (c *conn) read(p []byte) (int, error) {
	if c.idle == nil {
		return c.stream.Read(p)
	}
	if c.raw != nil && c.stream == c.socket && len(p) > 0 {
		return c.readOrIdle(p)
	}
	if c.idleErr = c.idle(); c.idleErr != nil {
		return 0, c.idleErr
	}
	return c.stream.Read(p)
}

// setDeadline bounds every read and write from now on; zero is no bound.
func (c *conn) setDeadline(t time.Time) error {
	if t.IsZero() && !c.deadlined {
		return nil
	}
	c.deadlined = !t.IsZero()
	return c.stream.SetDeadline(t)
}

// write sends head and body and returns how many bytes the system took.
func (c *conn) write(head, body []byte) (int64, error) {
	if len(body) == 0 {
		n, err := c.stream.Write(head)
		return int64(n), err
	}
	if c.stream == c.socket {
		parts := net.Buffers{head, body}
		return parts.WriteTo(c.socket)
	}
	n, err := c.stream.Write(head)
	if err != nil {
		return int64(n), err
	}
	m, err := c.stream.Write(body)
	return int64(n + m), err
}

// readHead reads status and headers of an answer to a request of this method, at most limit bytes, 1xx ones included,
// which it skips. The body of the response follows on the connection.
func (c *conn) readHead(method string, limit int) (*http.Response, error) {
	c.headRoom = limit
	defer func() { c.headRoom = unlimited }()
	asked := &http.Request{Method: method}
	for {
		resp, err := http.ReadResponse(c.br, asked)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
}

// abort closes the connection at once, without TLS's farewell, which could wait for the peer. It may be called from
// beside, and repeatedly.
func (c *conn) abort() { _ = c.socket.Close() }
