package peerlink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"iop/edged/strangers"
	"iop/proto/peerpb"
)

// door accepts what other replicas dial and sorts it: calls go to gRPC, for which the door is a listener, raft's to
// raft. More than MaxPending can't be unproved at once (package strangers).
type door struct {
	n         *Network
	calls     chan net.Conn
	shutCh    chan struct{}
	once      sync.Once
	threshold *strangers.Threshold
}

func newDoor(n *Network) *door {
	return &door{n: n, calls: make(chan net.Conn), shutCh: make(chan struct{}), threshold: strangers.NewThreshold(n.o.MaxPending)}
}

// accept runs until the listener fails or shut.
func (d *door) accept() error {
	for pause := 5 * time.Millisecond; ; {
		raw, err := d.n.o.Listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			d.admit(raw)
		case !passing(err):
			return err
		default:
			d.n.o.Logger.Warn("cluster listener: accept failed, trying again", "error", err)
			select {
			case <-time.After(pause):
			case <-d.shutCh:
				return err
			}
			pause = min(2*pause, time.Second)
		}
	}
}

// passing tells whether a failed accept will pass: a connection gone before it was accepted, no file descriptor left.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

func (d *door) admit(raw net.Conn) {
	at := d.threshold.Enter(raw)
	if at == nil {
		_ = raw.Close()
		return
	}
	d.n.over.Go(func() {
		defer d.threshold.Leave(at)
		d.sort(raw, at)
	})
}

// shut ends accept and everything that is being sorted.
func (d *door) shut() {
	d.once.Do(func() {
		close(d.shutCh)
		_ = d.n.o.Listener.Close()
		d.threshold.Close()
	})
}

// sort finds out what a connection is, within HandshakeTimeout.
func (d *door) sort(raw net.Conn, at *strangers.Stranger) {
	enliven(raw)
	_ = raw.SetDeadline(time.Now().Add(d.n.o.HandshakeTimeout))
	conn, cert, err := d.secure(raw)
	if err != nil {
		d.drop(raw, at, "TLS handshake failed", err)
		return
	}
	if t, ok := conn.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == peerpb.ALPNCalls {
		_ = raw.SetDeadline(time.Time{}) // gRPC has its own, and speaks first: that is how the other side knows
		d.hand(d.calls, &callConn{Conn: conn, raw: raw, cert: cert})
		return
	}
	var preface [peerpb.PrefaceLen]byte
	if _, err := io.ReadFull(conn, preface[:]); err != nil {
		d.drop(raw, at, "nothing received", err)
		return
	}
	switch string(preface[:]) {
	case peerpb.CallsPreface:
		if d.n.o.TLS != nil {
			d.drop(raw, at, "connection refused", refused("calls on a connection that ALPN did not say %s of", peerpb.ALPNCalls))
			return
		}
		_ = raw.SetDeadline(time.Time{})
		d.hand(d.calls, &callConn{Conn: conn, raw: raw, head: preface[:]})
	case peerpb.RaftPreface:
		if err := d.greet(conn, raw, cert); err != nil {
			d.drop(raw, at, "raft connection refused", err)
		}
	default:
		d.drop(raw, at, "connection refused", foreign(preface[:]))
	}
}

// secure does the TLS handshake; in plain text there is none, and no certificate.
func (d *door) secure(raw net.Conn) (net.Conn, *x509.Certificate, error) {
	if d.n.o.TLS == nil {
		return raw, nil, nil
	}
	c, err := d.n.serverTLS()
	if err != nil {
		return nil, nil, err
	}
	t := tls.Server(raw, c)
	if err := t.HandshakeContext(context.Background()); err != nil {
		var header tls.RecordHeaderError
		if errors.As(err, &header) {
			err = refused("plain text arrived on a port that speaks TLS; set edge.tls on the other side too")
		}
		return nil, nil, err
	}
	return t, t.ConnectionState().PeerCertificates[0], nil
}

// greet answers a raft connection's hello and gives it to raft.
func (d *door) greet(conn, raw net.Conn, cert *x509.Certificate) error {
	h, err := peerpb.ReadHello(conn)
	if err != nil {
		return err
	}
	answer := &peerpb.HelloAnswer{Hello: d.n.hello(h.From)}
	unwelcome := d.n.welcome(h, cert)
	if unwelcome != nil {
		answer.Refused = unwelcome.Error()
	}
	if err := peerpb.WriteHelloAnswer(conn, answer); err != nil {
		return err
	}
	if unwelcome != nil {
		return unwelcome
	}
	_ = raw.SetDeadline(time.Time{})
	c, err := d.n.raftConn(conn, raw)
	if err != nil {
		return err
	}
	return d.n.raft.hand(c, d.n.o.HandshakeTimeout)
}

// hand gives a connection to whoever accepts, or closes it.
func (d *door) hand(to chan<- net.Conn, c net.Conn) {
	select {
	case to <- c:
	case <-d.shutCh:
		_ = c.Close()
	}
}

func (d *door) drop(raw net.Conn, at *strangers.Stranger, what string, err error) {
	_ = raw.Close()
	if d.threshold.Leave(at) {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		d.n.o.Logger.Debug("cluster listener: "+what, "remote", raw.RemoteAddr().String(), "error", err) // a probe of the port
		return
	}
	d.n.complain(what, raw.RemoteAddr(), err)
}

// complain logs what is wrong with somebody, unless it was said just now.
func (n *Network) complain(what string, remote net.Addr, err error) {
	if n.faults.News(what, remote, err) {
		n.o.Logger.Warn("cluster listener: "+what, "remote", remote.String(), "error", err)
	}
}

func foreign(preface []byte) error {
	if preface[0] == 0x16 && preface[1] == 3 { // a TLS handshake record
		return refused("the other side speaks TLS, and this port plain text; set edge.tls here too")
	}
	return refused("begins with %q: it is no replica; is the address right?", preface)
}

// Accept, Close and Addr make the door the listener of the gRPC server.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.calls:
		return c, nil
	case <-d.shutCh:
		return nil, net.ErrClosed
	}
}

// Close ends the door.
func (d *door) Close() error { d.shut(); return nil }

// Addr is the listener's.
func (d *door) Addr() net.Addr { return d.n.o.Listener.Addr() }

// callConn is a connection of calls. It gives gRPC the bytes that sorting took, and can be found again from a call,
// through its address.
type callConn struct {
	net.Conn
	raw  net.Conn
	head []byte
	cert *x509.Certificate // nil in plain text
}

func (c *callConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Close closes what is under TLS, which never blocks.
func (c *callConn) Close() error { return c.raw.Close() }

// RemoteAddr carries the certificate.
func (c *callConn) RemoteAddr() net.Addr { return callAddr{Addr: c.Conn.RemoteAddr(), cert: c.cert} }

type callAddr struct {
	net.Addr
	cert *x509.Certificate
}
