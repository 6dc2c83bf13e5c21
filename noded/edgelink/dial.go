package edgelink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"iop/proto/nodepb"
)

// frameMax bounds a control frame in bytes; the largest is a configuration payload.
const frameMax = 16 << 20

// dial opens a connection to the edge, TLS included. Both planes use it, so gRPC itself is told that nothing secures it.
// raw is what lies under TLS: closing it never blocks.
func (l *Link) dial(ctx context.Context) (conn, raw net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.DialTimeout)
	defer cancel()
	d := net.Dialer{KeepAlive: 15 * time.Second}
	raw, err = d.DialContext(ctx, "tcp", l.o.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("dial edge: %w", err)
	}
	if l.o.TLS == nil {
		return raw, raw, nil
	}
	config := l.o.TLS.Clone()
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config.ServerName, _, _ = net.SplitHostPort(l.o.Address)
	}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, fmt.Errorf("TLS with edge: %w", explainTLS(err))
	}
	return secure, raw, nil
}

// control returns a client whose one connection is dialled by dial, once: this package reconnects by itself.
func (l *Link) control() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+l.o.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, _, err := l.dial(ctx)
			return conn, err
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 15 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(frameMax)),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0), grpc.WithNoProxy(),
	)
}

var errHandshake = errors.New("the edge does not take this data connection: its link is gone")

// dialData opens a data connection and proves it.
func (s *life) dialData(ctx context.Context) (conn, raw net.Conn, err error) {
	conn, raw, err = s.l.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	_ = raw.SetDeadline(time.Now().Add(s.l.o.DialTimeout))
	line := nodepb.AppendHandshake(nil, nodepb.Handshake{Node: s.l.o.NodeID, Generation: s.generation, Secret: s.secret})
	ok := false
	if _, err = conn.Write(line); err == nil {
		ok, err = nodepb.ReadHandshakeAnswer(conn)
	}
	if err == nil && !ok {
		err = errHandshake
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}
