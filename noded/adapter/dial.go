package adapter

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dialer opens connections to one endpoint: the addresses of its name raced as RFC 8305 says, then TLS if it is https.
type dialer struct {
	endpoint endpoint
	timeout  time.Duration // over everything, TLS included
	tls      *tls.Config   // nil for http
}

func newDialer(e endpoint, timeout time.Duration, config *tls.Config) dialer {
	d := dialer{endpoint: e, timeout: timeout}
	if !e.tls {
		return d
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d.tls = config.Clone()
	d.tls.NextProtos = []string{"http/1.1"}
	if d.tls.ServerName == "" {
		d.tls.ServerName = e.server
	}
	return d
}

// dial connects before the deadline, if there is one. Nothing of a request has been sent when it fails.
func (d dialer) dial(ctx context.Context, deadline time.Time) (*conn, error) {
	until := time.Now().Add(d.timeout)
	if !deadline.IsZero() && deadline.Before(until) {
		until = deadline
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var tcp net.Dialer
	socket, err := tcp.DialContext(ctx, "tcp", d.endpoint.address)
	if err != nil {
		return nil, fmt.Errorf("connect to backend: %w", err)
	}
	if d.tls == nil {
		return newConn(socket, socket), nil
	}
	stream := tls.Client(socket, d.tls)
	if err := stream.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("TLS with backend %s: %w", d.endpoint.address, err)
	}
	return newConn(socket, stream), nil
}
