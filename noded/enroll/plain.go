package enroll

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// ErrPlaintext is what Join returns before anything was sent or written.
var ErrPlaintext = errors.New("over plain HTTP to another machine whoever listens on the way could use the join token first")

// checkPlain refuses to show the join token to another machine, and to whoever listens on the way there, over plain HTTP. The
// edge would refuse it too, but only after it was shown.
func (o *Options) checkPlain(ctx context.Context) error {
	u, err := url.Parse(o.Edge)
	if err != nil || u.Scheme != "http" || o.Plaintext || here(ctx, u.Hostname()) {
		return nil // what is no URL is told by ask
	}
	return fmt.Errorf("%w: %s; use the https URL of the edge, or accept it with --plaintext", ErrPlaintext, o.Edge)
}

// here tells whether a host is this machine: all of its addresses are loopback. One that is not found gets no token anyway.
func here(ctx context.Context, host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return true
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return false
		}
	}
	return true
}
