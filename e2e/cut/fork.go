package cut

import (
	"fmt"
	"net"
	"sync"
)

// Fork is a listener in front of several proxies: who dials decides which of them carries the connection. So the ways
// from each of several programs to one address can be broken apart from each other.
type Fork struct {
	listener net.Listener
	wait     sync.WaitGroup
}

// NewFork listens on an address. which gives the proxy for a connection from an IP address; nil resets it.
func NewFork(address string, which func(from net.IP) *Proxy) (*Fork, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen as a fork: %w", err)
	}
	f := &Fork{listener: l}
	f.wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			near := c.(*net.TCPConn)
			p := which(near.RemoteAddr().(*net.TCPAddr).IP)
			if p == nil || !p.take(near) {
				_ = near.SetLinger(0)
				_ = near.Close()
			}
		}
	})
	return f, nil
}

// take carries a connection as if it had been accepted; false: the proxy is closed.
func (p *Proxy) take(near *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wait.Go(func() { p.serve(near) })
	return true
}

// Address is host:port to dial.
func (f *Fork) Address() string { return f.listener.Addr().String() }

// Close ends the fork; its connections are the proxies'.
func (f *Fork) Close() {
	_ = f.listener.Close()
	f.wait.Wait()
}
