package cut

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one carried connection. Its fields are guarded by the proxy's lock.
type link struct {
	near, far *net.TCPConn
	modes     [2]mode
	gone      bool
}

func (l *link) reset() {
	l.gone = true
	_ = l.near.SetLinger(0)
	_ = l.far.SetLinger(0)
	_ = l.near.Close()
	_ = l.far.Close()
}

func (p *Proxy) carry(near, far *net.TCPConn) {
	l := &link{near: near, far: far}
	p.mu.Lock()
	l.modes = p.modes
	if p.closed {
		l.reset()
	}
	p.links[l] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, Up, near, far) })
	both.Go(func() { p.pump(l, Down, far, near) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
	_ = near.Close()
	_ = far.Close()
}

// pump carries one direction until its end.
func (p *Proxy) pump(l *link, d Direction, from, to *net.TCPConn) {
	buf := make([]byte, 32<<10)
	var tail []byte // the end of what went before, so that a pattern is found across two reads
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if d == Up {
				tail = p.look(l, tail, buf[:n])
			}
			switch p.gate(l, d, n, false) {
			case hold:
				return // the connection is gone
			case swallow:
			default:
				if _, werr := to.Write(buf[:n]); werr != nil {
					err = werr
				}
			}
		}
		if err != nil {
			p.end(l, d, to, err)
			return
		}
	}
}

// look arms the hold of HoldAnswerTo and returns the new tail.
func (p *Proxy) look(l *link, tail, piece []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pattern == nil {
		return nil
	}
	tail = append(tail, piece...)
	if bytes.Contains(tail, p.pattern) {
		l.modes[Down] = hold
	}
	return append([]byte(nil), tail[max(0, len(tail)-len(p.pattern)):]...)
}

// gate waits while the direction is held (or, for the end of a connection, swallowed) and returns what to do; hold
// means that the connection is gone. n is how many bytes wait.
func (p *Proxy) gate(l *link, d Direction, n int, end bool) mode {
	p.mu.Lock()
	for !l.gone && (l.modes[d] == hold || end && l.modes[d] == swallow) {
		p.turn.Wait()
	}
	m, gone, delay, rate := l.modes[d], l.gone, p.delay, p.rate
	p.mu.Unlock()
	if gone {
		return hold
	}
	if rate > 0 {
		delay += time.Duration(n) * time.Second / time.Duration(rate)
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	return m
}

// end hands the end of one direction on: an orderly one as such, anything else as a reset.
func (p *Proxy) end(l *link, d Direction, to *net.TCPConn, err error) {
	if p.gate(l, d, 0, true) == hold {
		return
	}
	if errors.Is(err, io.EOF) {
		_ = to.CloseWrite()
		return
	}
	p.mu.Lock()
	l.reset()
	p.turn.Broadcast()
	p.mu.Unlock()
}
