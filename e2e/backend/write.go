package backend

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorBody(status, message))
}

func addHeader(w http.ResponseWriter, p *Plan, kind string) {
	w.Header().Set("Content-Type", kind)
	for k, v := range p.Header {
		w.Header()[http.CanonicalHeaderKey(k)] = slices.Clone(v)
	}
}

// pause waits; it reports false if the caller left first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// write sends p in pieces of at most split bytes and flushes each.
func write(w http.ResponseWriter, p []byte, split int) error {
	if split <= 0 {
		split = max(len(p), 1)
	}
	for c := range slices.Chunk(p, split) {
		if _, err := w.Write(c); err != nil {
			return err
		}
		if err := flush(w); err != nil {
			return err
		}
	}
	return nil
}

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }

// rawHead renders a 200 with the headers.
func rawHead(h http.Header) []byte {
	var s strings.Builder
	s.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&s)
	s.WriteString("Connection: close\r\n\r\n")
	return []byte(s.String())
}

// sendRaw takes the connection over and writes bytes; with slow > 0 it pauses after each byte up to the empty line.
func sendRaw(w http.ResponseWriter, raw []byte, slow time.Duration) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(fmt.Errorf("take the connection over: %w", err))
	}
	defer func() { _ = c.Close() }()
	if head := strings.Index(string(raw), "\r\n\r\n"); slow > 0 && head >= 0 {
		for i := range head {
			if _, err := c.Write(raw[i : i+1]); err != nil {
				return
			}
			time.Sleep(slow)
		}
		raw = raw[head:]
	}
	_, _ = c.Write(raw)
}

// reset closes the connection so that the other side sees a reset, not an end.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(fmt.Errorf("take the connection over: %w", err))
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
