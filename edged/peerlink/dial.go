package peerlink

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// dial opens a connection to a replica and, with TLS, makes sure that it is that one. raw is what lies under TLS.
func (n *Network) dial(ctx context.Context, to Member, alpn string) (conn, raw net.Conn, err error) {
	raw, err = (&net.Dialer{LocalAddr: n.local(to.Address)}).DialContext(ctx, "tcp", to.Address)
	if err != nil {
		return nil, nil, err
	}
	enliven(raw)
	if n.o.TLS == nil {
		return raw, raw, nil
	}
	c, err := n.clientTLS(to.ID, alpn)
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	t := tls.Client(raw, c)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	return t, raw, nil
}

// local is the address to dial from: between loopback addresses this replica's own, so that replicas on one machine can
// be told apart by what stands between them; else any.
func (n *Network) local(to string) net.Addr {
	own, ok := n.o.Listener.Addr().(*net.TCPAddr)
	host, _, err := net.SplitHostPort(to)
	if !ok || err != nil || !own.IP.IsLoopback() {
		return nil
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() || (ip.To4() == nil) != (own.IP.To4() == nil) {
		return nil
	}
	return &net.TCPAddr{IP: own.IP}
}

// enliven lets the kernel notice that the other machine is gone, on connections that we only listen to.
func enliven(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: 2 * time.Second, Count: 3}) // best effort
	}
}

// told is a refusal that came as text.
func told(text string) error {
	return refused("%s", strings.TrimPrefix(text, ErrRefused.Error()+": "))
}
