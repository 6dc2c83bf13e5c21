package nodelink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"iop/edged/strangers"
	"iop/proto/nodepb"
)

// door accepts what nodes dial and sorts it: control connections go to gRPC, for which the door is a listener, data
// connections to their link. More than MaxPending can't be unproved at once (package strangers).
type door struct {
	links     *Links
	control   chan net.Conn
	shutCh    chan struct{}
	once      sync.Once
	threshold *strangers.Threshold
}

func newDoor(l *Links) *door {
	return &door{links: l, control: make(chan net.Conn), shutCh: make(chan struct{}), threshold: strangers.NewThreshold(l.o.MaxPending)}
}

// accept runs until the listener fails or shut.
func (d *door) accept() error {
	pause := 5 * time.Millisecond
	for {
		raw, err := d.links.o.Listener.Accept()
		if err != nil {
			if passing(err) {
				d.links.o.Logger.Warn("node listener: accept failed, trying again", "error", err)
				if !d.sleep(pause) {
					return err
				}
				pause = min(2*pause, time.Second)
				continue
			}
			return err
		}
		pause = 5 * time.Millisecond
		at := d.threshold.Enter(raw)
		if at == nil {
			_ = raw.Close()
			continue
		}
		d.links.over.Go(func() { d.sort(raw, at) })
	}
}

// passing tells whether a failed accept will pass: a connection gone before it was accepted, no file descriptor left.
func passing(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

func (d *door) sleep(t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-d.shutCh:
		return false
	}
}

// shut ends accept and everything that is being sorted.
func (d *door) shut() {
	d.once.Do(func() {
		close(d.shutCh)
		_ = d.links.o.Listener.Close()
		d.threshold.Close()
	})
}

// sort finds out what a connection is, within HandshakeTimeout.
func (d *door) sort(raw net.Conn, at *strangers.Stranger) {
	_ = raw.SetDeadline(time.Now().Add(d.links.o.HandshakeTimeout))
	conn := raw
	if d.links.o.TLS != nil {
		t := tls.Server(raw, d.links.o.TLS)
		if err := t.HandshakeContext(context.Background()); err != nil {
			var header tls.RecordHeaderError
			if errors.As(err, &header) {
				err = fmt.Errorf("plain text arrived where TLS is spoken; set node.tls.enabled at the node: %w", err)
			}
			d.drop(raw, at, "TLS handshake failed", err)
			return
		}
		conn = t
	}
	var preface [nodepb.PrefaceLen]byte
	if _, err := io.ReadFull(conn, preface[:]); err != nil {
		d.drop(raw, at, "nothing received", err)
		return
	}
	switch string(preface[:]) {
	case nodepb.ControlPreface:
		_ = raw.SetDeadline(time.Time{})
		c := &controlConn{Conn: conn, raw: raw, head: preface[:], at: at, of: d.threshold}
		select {
		case d.control <- c:
		case <-d.shutCh:
			_ = c.Close()
		}
	case nodepb.DataPreface:
		if err := d.links.admitData(conn, raw); err != nil {
			d.drop(raw, at, "data connection refused", err)
			return
		}
		d.threshold.Leave(at)
	default:
		d.drop(raw, at, "neither a node nor a data connection; is the address right, and TLS set alike on both sides?", nil)
	}
}

func (d *door) drop(raw net.Conn, at *strangers.Stranger, what string, err error) {
	_ = raw.Close()
	if !d.threshold.Leave(at) && d.links.faults.News(what, raw.RemoteAddr(), err) {
		d.links.o.Logger.Info("node listener: "+what, "remote", raw.RemoteAddr().String(), "error", err)
	}
}

// Accept, Close and Addr make the door the listener of the gRPC server.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.control:
		return c, nil
	case <-d.shutCh:
		return nil, net.ErrClosed
	}
}

// Close ends the door.
func (d *door) Close() error { d.shut(); return nil }

// Addr is the listener's.
func (d *door) Addr() net.Addr { return d.links.o.Listener.Addr() }

// controlConn is a control connection. It gives gRPC the bytes that sorting took, and can be found again from a call,
// through its address.
type controlConn struct {
	net.Conn
	raw  net.Conn
	head []byte
	at   *strangers.Stranger
	of   *strangers.Threshold
}

func (c *controlConn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// proved tells that a node showed its token on it.
func (c *controlConn) proved() { c.of.Leave(c.at) }

// Close closes what is under TLS, which never blocks.
func (c *controlConn) Close() error {
	c.proved()
	return c.raw.Close()
}

// RemoteAddr carries the connection itself.
func (c *controlConn) RemoteAddr() net.Addr { return controlAddr{Addr: c.Conn.RemoteAddr(), conn: c} }

type controlAddr struct {
	net.Addr
	conn *controlConn
}
