package nodelink

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Commands is where links are registered and fenced: the edge's session.
type Commands interface {
	// Do proposes a command and waits for its outcome.
	Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error)
}

// Catalog tells which nodes there are.
type Catalog interface {
	// Node returns what the configuration has on a node, false if it has none of that name.
	Node(id fsm.NodeID) (NodeEntry, bool)
}

// NodeEntry is what the edge must know of a node to accept it.
type NodeEntry struct {
	TokenSHA256 string // hex of the SHA-256 of the node's token; "" = it has none, and no token is right
	Revision    uint64 // of the configuration that Payload is from
	Payload     *nodepb.NodeConfigPayload
}

// Members tells where nodes reach the edges of the cluster.
type Members interface {
	// Edges returns them by their ids, and the index of the state that this is from.
	Edges() (addresses map[fsm.EdgeID]string, index uint64)
}

// Metrics counts what happens on the links. Methods are called from many goroutines and must not block.
type Metrics interface {
	// LinkUp counts an accepted registration.
	LinkUp(node string)
	// LinkDown counts the end of a link and why.
	LinkDown(node, reason string)
	// LinkRefused counts a refused registration by its code.
	LinkRefused(code string)
	// FrameDropped counts a frame about something that this edge does not know (a run that ended, an old generation).
	FrameDropped(kind string)
}

// Options of Links. Zero spans and counts take the defaults named with them.
type Options struct {
	Listener  net.Listener // required; closed by Run
	TLS       *tls.Config  // nil: plain
	Commands  Commands     // required
	Catalog   Catalog      // required
	Edge      fsm.EdgeID
	ClusterID string
	Version   string       // of the edge's program, for people
	Logger    *slog.Logger // nil: silent
	Metrics   Metrics      // nil: none

	HeartbeatInterval time.Duration // 2 s
	HeartbeatMissed   int           // intervals of silence that end a link: 3
	PingWait          time.Duration // how long an old link has to answer before a newcomer takes its place: 2 s
	FenceTimeout      time.Duration // longest wait for a canceled run's end: 10 s
	ConnectWait       time.Duration // longest wait of an exchange for a data connection: 2 s
	HandshakeTimeout  time.Duration // for TLS, data handshake, Register: 5 s
	IdleTimeout       time.Duration // spare data connections beyond SpareConnections are closed after: 60 s
	SpareConnections  int           // idle data connections to keep ready per link: 8
	MaxConnections    int           // data connections per link, more than any node has slots: 16,384
	MaxPending        int           // accepted connections that have not proved themselves: 256
	MaxBodyBytes      int64         // largest request body, told to the nodes: 64 MiB
	GoodbyeRetryAfter time.Duration // told to nodes at Goodbye: 1 s

	// Members tells where nodes reach the cluster's edges; nil: nothing is told.
	Members Members

	// Fenced returns the node's generations that are fenced and hold leases, by the newest state; nil: none are known.
	Fenced func(fsm.NodeID) []fsm.Generation

	// Permanent tells of an error of Commands that trying again is pointless (the session ended, the store is closed).
	// nil: none is; LinkLost is then tried until Run ends.
	Permanent func(error) bool
}

var errOptions = errors.New("nodelink: Listener, Commands and Catalog are required")

func (o *Options) complete() error {
	if o.Listener == nil || o.Commands == nil || o.Catalog == nil {
		return errOptions
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Permanent == nil {
		o.Permanent = func(error) bool { return false }
	}
	orSpan(&o.HeartbeatInterval, 2*time.Second)
	orSpan(&o.PingWait, 2*time.Second)
	orSpan(&o.FenceTimeout, 10*time.Second)
	orSpan(&o.ConnectWait, 2*time.Second)
	orSpan(&o.HandshakeTimeout, 5*time.Second)
	orSpan(&o.IdleTimeout, time.Minute)
	orSpan(&o.GoodbyeRetryAfter, time.Second)
	orCount(&o.HeartbeatMissed, 3)
	orCount(&o.SpareConnections, 8)
	orCount(&o.MaxConnections, 16<<10)
	orCount(&o.MaxPending, 256)
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = 64 << 20
	}
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

func (noMetrics) LinkUp(string)           {}
func (noMetrics) LinkDown(string, string) {}
func (noMetrics) LinkRefused(string)      {}
func (noMetrics) FrameDropped(string)     {}
