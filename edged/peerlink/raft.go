package peerlink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"iop/proto/peerpb"
)

// raftListener is where raft accepts.
type raftListener struct {
	addr  net.Addr
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func newRaftListener(addr net.Addr) *raftListener {
	return &raftListener{addr: addr, conns: make(chan net.Conn), over: make(chan struct{})}
}

// Accept returns the next connection.
func (l *raftListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; later connections are closed.
func (l *raftListener) Close() error { l.once.Do(func() { close(l.over) }); return nil }

// Addr is that of the cluster listener.
func (l *raftListener) Addr() net.Addr { return l.addr }

// hand gives a connection to raft, or closes it if nobody accepts.
func (l *raftListener) hand(c net.Conn, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case l.conns <- c:
		return nil
	case <-l.over:
		_ = c.Close()
		return nil
	case <-timer.C:
		_ = c.Close()
		return fmt.Errorf("raft does not accept connections yet: %w", ErrStarting)
	}
}

// raftConn is a connection that raft has; the Network closes what is left of them in the end.
type raftConn struct {
	net.Conn
	raw net.Conn
	n   *Network
}

func (n *Network) raftConn(conn, raw net.Conn) (net.Conn, error) {
	c := &raftConn{Conn: conn, raw: raw, n: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = raw.Close()
		return nil, ErrClosed
	}
	n.rafts[c] = struct{}{}
	return c, nil
}

// Close closes what is under TLS, which never blocks.
func (c *raftConn) Close() error {
	c.n.mu.Lock()
	delete(c.n.rafts, c)
	c.n.mu.Unlock()
	return c.raw.Close()
}

// DialRaft opens a connection for raft. It takes HandshakeTimeout at most.
func (n *Network) DialRaft(ctx context.Context, to Member) (net.Conn, error) {
	c, err := n.dialRaft(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("raft connection to %s at %s: %w", to.ID, to.Address, n.explain(err))
	}
	return c, nil
}

func (n *Network) dialRaft(ctx context.Context, to Member) (net.Conn, error) {
	if to.ID == n.o.ID {
		return nil, refused("this is replica %s itself", to.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, n.o.HandshakeTimeout)
	defer cancel()
	conn, raw, err := n.dial(ctx, to, peerpb.ALPNRaft)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = n.introduce(conn, to.ID)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return nil, err
	}
	return n.raftConn(conn, raw)
}

// introduce says hello and hears the answer.
func (n *Network) introduce(conn net.Conn, id string) error {
	if err := peerpb.WriteHello(conn, n.hello(id)); err != nil {
		return err
	}
	a, err := peerpb.ReadHelloAnswer(conn)
	if err != nil {
		return err
	}
	if a.Refused != "" {
		return fmt.Errorf("the other side: %w", told(a.Refused))
	}
	if a.Hello == nil {
		return fmt.Errorf("answer to hello: %w", peerpb.ErrMalformed)
	}
	return n.agrees(a.Hello, id)
}
