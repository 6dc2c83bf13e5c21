package peerlink

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"
)

// Metrics counts what happens between replicas. Methods are called from many goroutines and must not block. A peer is
// named by the id that this replica dials it under.
type Metrics interface {
	// PeerUp tells whether a peer answers.
	PeerUp(peer string, up bool)
	// PeerRoundTrip is the time of an answered ping.
	PeerRoundTrip(peer string, d time.Duration)
	// PeerForwarded counts batches that a peer gave a verdict on.
	PeerForwarded(peer, verdict string)
	// PeerGone tells that a peer is not dialled any more.
	PeerGone(peer string)
}

// Options of a Network. Zero spans and counts take the defaults named with them.
type Options struct {
	Listener net.Listener // required; closed by Run
	ID       string       // of this replica; required
	Version  string       // of the program, for people
	// TLS returns the certificate of this replica and the authority of all, as Certificates and ClientCAs; it is called at
	// each handshake, so that renewed files need no restart. nil: plain text.
	TLS     func() (*tls.Config, error)
	Logger  *slog.Logger // nil: silent
	Metrics Metrics      // nil: none

	HandshakeTimeout time.Duration // for TCP, TLS and Hello together: 2 s
	CallTimeout      time.Duration // of a call whose context has no earlier end: 2 s
	PingInterval     time.Duration // between pings of a peer: 1 s
	PingTimeout      time.Duration // without any byte of a peer, its connection is cut: 2 s
	IdleTimeout      time.Duration // a peer that nothing was sent to for so long is let go: 1 min
	BackoffMin       time.Duration // before a new connection after a failed one: 50 ms
	BackoffMax       time.Duration // 500 ms
	Window           int           // batches on a lane without a verdict: 256
	MaxMessage       int           // bytes of a message, above what one Send carries: 10 MiB
	MaxPending       int           // accepted connections that have not proved themselves: 64
}

var errOptions = errors.New("peerlink: Listener and ID are required")

func (o *Options) complete() error {
	if o.Listener == nil || o.ID == "" {
		return errOptions
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	orSpan(&o.HandshakeTimeout, 2*time.Second)
	orSpan(&o.CallTimeout, 2*time.Second)
	orSpan(&o.PingInterval, time.Second)
	orSpan(&o.PingTimeout, 2*time.Second)
	orSpan(&o.IdleTimeout, time.Minute)
	orSpan(&o.BackoffMin, 50*time.Millisecond)
	orSpan(&o.BackoffMax, 500*time.Millisecond)
	orCount(&o.Window, 256)
	orCount(&o.MaxMessage, 10<<20)
	orCount(&o.MaxPending, 64)
	return nil
}

func orSpan(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

func orCount(n *int, def int) {
	if *n <= 0 {
		*n = def
	}
}

type noMetrics struct{}

func (noMetrics) PeerUp(string, bool)                 {}
func (noMetrics) PeerRoundTrip(string, time.Duration) {}
func (noMetrics) PeerForwarded(string, string)        {}
func (noMetrics) PeerGone(string)                     {}
