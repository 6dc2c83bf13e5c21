package openai

import (
	"context"
	"crypto/tls"
	"net"
)

// connKey is where a request's context has the client's connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// fragile has the connection of a client that speaks HTTP/1.0 be reset by whatever ends it from now on, a kill of this
// process too: such a client takes the plain end of the connection for the end of the answer. false: the answer has
// come to its end, and the connection ends plainly. nginx speaks HTTP/1.0 to what it stands in front of.
func (x *exchange) fragile(on bool) {
	if x.r.ProtoAtLeast(1, 1) {
		return
	}
	seconds := -1
	if on {
		seconds = 0
	}
	c := x.r.Context().Value(connKey{})
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetLinger(seconds) // a connection that is gone needs no care
	}
}
