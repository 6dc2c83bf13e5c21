package edgelink

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"iop/proto/nodepb"
)

// Options of a Link. Zero spans and counts take the defaults named with them.
type Options struct {
	Address string // host:port of the edge's node listener; required
	NodeID  string // required
	Token   string // raw; never logged
	TLS     *tls.Config
	Hands   Hands        // required
	Runs    *Runs        // shared by all links of the node; nil: this link's own
	Logger  *slog.Logger // nil: silent
	Version string       // for people

	DialTimeout    time.Duration // 5 s
	StopWait       time.Duration // how long running runs may go on after ctx ended: 0 = they are canceled at once
	BackoffMin     time.Duration // 100 ms
	BackoffMax     time.Duration // 10 s
	BackoffReset   time.Duration // a link that was up this long starts anew at BackoffMin: 30 s
	MaxConnections int           // data connections: 1024

	// Observe is told of every change of the link's state; may be nil. It must not block.
	Observe func(State)
}

// State is a link's condition for the node's own log and status.
type State struct {
	Address    string
	Phase      Phase
	Generation uint64
	Code       string // of a refusal
	Err        error
}

// Phase is where a link is in its life.
type Phase string

// The phases.
const (
	PhaseDialing Phase = "dialing"
	PhaseRefused Phase = "refused"
	PhasePending Phase = "pending" // accepted, not ready yet
	PhaseReady   Phase = "ready"
	PhaseLost    Phase = "lost"
	PhaseStopped Phase = "stopped"
)

var errOptions = errors.New("edgelink: Address, NodeID and Hands are required")

// Link keeps one edge dialled.
type Link struct {
	o Options
}

// New returns a Link that Run brings to life. It fails only if a required option is missing.
func New(o Options) (*Link, error) {
	if o.Address == "" || o.NodeID == "" || o.Hands == nil {
		return nil, errOptions
	}
	return &Link{o: o}, nil
}

// Run keeps the link up until ctx ends, then says goodbye, lets running runs end (StopWait), and returns nil when all
// that it started is over. Refusals and lost links are logged and tried again.
func (l *Link) Run(ctx context.Context) error { panic("being written") }

// Health tells the edge of a provider's condition, now and after every reconnect. cause is for people.
func (l *Link) Health(provider string, state nodepb.Health_State, cause string) { panic("being written") }
