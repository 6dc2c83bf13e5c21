package adapter_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"iop/noded/adapter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rawBackend is a TCP server that does whatever a test wants with each connection.
type rawBackend struct {
	listener net.Listener
	accepted atomic.Int64
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// rawConn is one connection at the backend.
type rawConn struct {
	net.Conn
	r *bufio.Reader
	n int // from 1
}

func newRawBackend(t testing.TB, serve func(c *rawConn)) *rawBackend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &rawBackend{listener: l, conns: map[net.Conn]bool{}}
	b.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(b.accepted.Add(1))
			b.mu.Lock()
			b.conns[c] = true
			b.mu.Unlock()
			b.wg.Go(func() {
				defer c.Close() //nolint:errcheck // the test has ended with it
				serve(&rawConn{Conn: c, r: bufio.NewReader(c), n: n})
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.wg.Wait()
	})
	return b
}

func (b *rawBackend) url() string { return "http://" + b.listener.Addr().String() }

// request reads one whole request, nil if the client has gone.
func (c *rawConn) request() *http.Request {
	r, err := http.ReadRequest(c.r)
	if err != nil {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// write sends text; what goes wrong shows at the other end.
func (c *rawConn) write(text string) { _, _ = io.WriteString(c, text) }

// untilGone returns when the client has closed the connection.
func (c *rawConn) untilGone() { _, _ = io.Copy(io.Discard, c.r) }

// always answers every request on every connection with the same bytes.
func always(answer string) func(*rawConn) {
	return func(c *rawConn) {
		for c.request() != nil {
			c.write(answer)
		}
	}
}

// recorder is an Answer that keeps everything.
type recorder struct {
	mu     sync.Mutex
	status int
	header http.Header
	body   bytes.Buffer
	pieces int
	onData func(total int) error // may be nil
}

func (r *recorder) Head(status int, h http.Header) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		return errors.New("Head was called twice")
	}
	r.status, r.header = status, h
	return nil
}

func (r *recorder) Data(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		return errors.New("Data was called before Head")
	}
	if len(p) == 0 {
		return errors.New("Data was called with nothing")
	}
	r.pieces++
	r.body.Write(p)
	if r.onData != nil {
		return r.onData(r.body.Len())
	}
	return nil
}

func newOpenAI(t testing.TB, c adapter.OpenAIConfig) *adapter.OpenAI {
	t.Helper()
	o, err := adapter.NewOpenAI(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

func post(body string) *adapter.Call {
	return &adapter.Call{
		Method: http.MethodPost,
		Path:   "/v1/chat/completions",
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(body),
	}
}

// do runs a call and returns what came.
func do(ctx context.Context, a adapter.Adapter, c *adapter.Call) (*recorder, adapter.End) {
	var r recorder
	end := a.Do(ctx, c, &r)
	return &r, end
}

// wantEnd fails the test unless the run ended so.
func wantEnd(t *testing.T, got adapter.End, d adapter.Dispatched, code string) {
	t.Helper()
	if got.Dispatched != d || got.Code != code {
		t.Fatalf("end is dispatched=%s code=%q (%s), want dispatched=%s code=%q", got.Dispatched, got.Code, got.Message, d, code)
	}
}

func withLength(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func chunked(pieces ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, p := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}
