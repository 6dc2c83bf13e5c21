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
	raw, err = (&net.Dialer{}).DialContext(ctx, "tcp", to.Address)
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
