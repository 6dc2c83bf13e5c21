package peerlink

import (
	"context"
	"net"
	"sync/atomic"
)

// line is a connection under gRPC, on the side that dialled. It knows when something was heard on it, and what a silent
// end means before anything was.
type line struct {
	net.Conn
	raw    net.Conn
	p      *peer
	heard  atomic.Int64 // Network.now
	spoken bool         // something was heard; the reader's
	first  []byte       // read by listen
}

// listen waits for the first byte: the end of a TLS handshake does not tell this side whether the other took its
// certificate.
func (l *line) listen(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = l.raw.Close() })
	var b [1]byte
	n, err := l.Read(b[:])
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	l.first = b[:n]
	return nil
}

func (l *line) Read(b []byte) (int, error) {
	if len(l.first) > 0 {
		n := copy(b, l.first)
		l.first = l.first[n:]
		return n, nil
	}
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.spoken = true
		l.heard.Store(l.p.n.now())
	}
	if !l.spoken {
		err = l.p.n.explain(err)
	}
	return n, err
}

// Close closes what is under TLS, which never blocks.
func (l *line) Close() error { return l.raw.Close() }
