package edgelink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"iop/proto/nodepb"
)

// Options of a Link. Zero spans and counts take the defaults named with them.
type Options struct {
	Address string      // host:port of the edge's node listener; required
	NodeID  string      // required
	Token   string      // raw; never logged
	TLS     *tls.Config // nil: plain
	Hands   Hands       // required
	Runs    *Runs       // shared by all links of the node; nil: this link's own
	Logger  *slog.Logger
	Version string // for people

	DialTimeout    time.Duration // also for the answer to Register: 5 s
	StopWait       time.Duration // how long running runs may go on after ctx ended; 0 = they are canceled at once
	BackoffMin     time.Duration // 100 ms
	BackoffMax     time.Duration // BackoffMax
	BackoffReset   time.Duration // a link that was up this long starts anew at BackoffMin: 30 s
	MaxConnections int           // data connections, more than any node has slots: 16,384

	// Look says what a provider's backend tells of itself, when an edge asks; nil: nothing is told. It is called from
	// goroutines of its own, a few at the same time, and must return soon after its context ends.
	Look func(ctx context.Context, provider string) *nodepb.BackendStatus
	// Drained is told what an operator drains: a provider, or the whole node if it is "". May be nil. It must not block.
	Drained func(provider string, on bool)
	// Edge is the id of the edge at Address, if it is known: while another link holds that edge, this one waits. Empty: what
	// the edge says.
	Edge string
	// Members is told where the edges of the cluster are, whenever the edge says so; may be nil. It must not block.
	Members func(Membership)

	// Observe is told of every change of the link's state, one call at a time; may be nil. It must not block.
	Observe func(State)
}

// Membership is where the edges of a cluster are, as one of them said.
type Membership struct {
	Cluster string            // id
	Index   uint64            // of the state that it is from: of two, that with the higher one counts
	Edges   map[string]string // id → host:port for nodes
}

// BackoffMax is the longest pause between two attempts. An edge that comes back takes its nodes to be about to connect for
// provider_pool.startup_grace_ms; if a node pauses longer, the waiters that the edge kept are refused meanwhile.
const BackoffMax = 4 * time.Second

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
	o       Options
	serving sync.WaitGroup // data connections, which may outlive the life of the link that they belong to

	edge    string        // that accepted last; this and the next three are of Run's goroutine
	named   []uint64      // the leases that the last registration named
	waits   bool          // for another link of the same edge
	fault   fault         // why the link is not up
	leave   chan struct{} // closed by Leave
	leaving sync.Once

	mu     sync.Mutex
	health map[string]*nodepb.Health // newest per provider
	now    *life                     // to tell health to; nil: none is up
}

// New returns a Link that Run brings to life. It fails only if a required option is missing.
func New(o Options) (*Link, error) {
	if o.Address == "" || o.NodeID == "" || o.Hands == nil {
		return nil, errOptions
	}
	if o.Runs == nil {
		o.Runs = NewRuns()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(State) {}
	}
	if o.Members == nil {
		o.Members = func(Membership) {}
	}
	if o.Drained == nil {
		o.Drained = func(string, bool) {}
	}
	orSpan(&o.DialTimeout, 5*time.Second)
	orSpan(&o.BackoffMin, 100*time.Millisecond)
	orSpan(&o.BackoffMax, BackoffMax)
	orSpan(&o.BackoffReset, 30*time.Second)
	if o.MaxConnections <= 0 {
		o.MaxConnections = 16 << 10
	}
	return &Link{o: o, edge: o.Edge, leave: make(chan struct{}), health: map[string]*nodepb.Health{}}, nil
}

func orSpan(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// Run keeps the link up until ctx ends, then says goodbye, lets running runs end (StopWait), and returns nil when all
// that it started is over. Refusals and lost links are logged and tried again.
func (l *Link) Run(ctx context.Context) error {
	defer l.o.Observe(State{Address: l.o.Address, Phase: PhaseStopped})
	defer l.serving.Wait()
	backoff := l.o.BackoffMin
	for ctx.Err() == nil && !l.left() {
		if l.held(ctx) {
			l.sleep(ctx, l.o.BackoffMax)
			continue
		}
		l.o.Observe(State{Address: l.o.Address, Phase: PhaseDialing})
		up, err := l.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if up >= l.o.BackoffReset || errors.Is(err, errRetired) {
			backoff = l.o.BackoffMin
		}
		pause := backoff/2 + rand.N(backoff/2+1)
		backoff = min(2*backoff, l.o.BackoffMax)
		var bye *byeError
		if errors.As(err, &bye) && bye.after > 0 {
			pause = bye.after + rand.N(bye.after/2+1)
		}
		l.tell(err, pause)
		l.sleep(ctx, pause)
	}
	return nil
}

// Leave has Run return when the link that is up has ended, rather than dial again.
func (l *Link) Leave() { l.leaving.Do(func() { close(l.leave) }) }

func (l *Link) left() bool {
	select {
	case <-l.leave:
		return true
	default:
		return false
	}
}

// held tells whether another link holds this one's edge. Which edge that is has to be asked first, where another address
// could lead to it: the edge would take this link for the valid one and end the other, with all that runs.
func (l *Link) held(ctx context.Context) bool {
	if l.edge == "" && l.o.Runs.holding() {
		if c, err := l.Check(ctx); err == nil && c.Checked != nil {
			l.edge = c.Checked.Edge
		}
	}
	if !l.o.Runs.held(l.edge, l) {
		l.waits = false
		return false
	}
	if l.o.Edge == "" && !l.waits {
		l.o.Logger.Warn("another address leads to the same edge, and is linked; name each edge once in the node's configuration",
			"edge", l.o.Address, "edge_id", l.edge)
	}
	l.waits = true
	return true
}

// sleep waits, or until ctx ends or the link is to be left.
func (l *Link) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.leave:
	case <-ctx.Done():
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tell logs why the link is not up. A fault that repeats is told once a minute: a node tries every few seconds.
func (l *Link) tell(err error, pause time.Duration) {
	log := l.o.Logger.With("edge", l.o.Address, "again_in", pause.Round(time.Millisecond).String())
	var refused *refusedError
	var bye *byeError
	switch {
	case errors.As(err, &refused):
		l.fault.log(log, slog.LevelError, refused.code+refused.message, "the edge refuses this node",
			"code", refused.code, "cause", refused.message, "cure", refused.cure)
		l.o.Observe(State{Address: l.o.Address, Phase: PhaseRefused, Code: refused.code, Err: err})
	case errors.As(err, &bye):
		log.Info("the edge says goodbye", "cause", bye.reason)
		l.o.Observe(State{Address: l.o.Address, Phase: PhaseLost, Err: err})
	case errors.Is(err, errRetired):
		log.Info("the edge's session has ended; the link carries on what runs, beside a new one")
		l.o.Observe(State{Address: l.o.Address, Phase: PhaseLost, Err: err})
	default:
		l.fault.log(log, slog.LevelWarn, fmt.Sprint(err), "the link is down", "error", err)
		l.o.Observe(State{Address: l.o.Address, Phase: PhaseLost, Err: err})
	}
}

// refusedError is the edge's Refused.
type refusedError struct{ code, message, cure string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("refused (%s): %s; %s", e.code, e.message, e.cure)
}

// byeError is an orderly end by the edge.
type byeError struct {
	reason string
	after  time.Duration
}

func (e *byeError) Error() string { return "goodbye: " + e.reason }

// Health tells the edge of a provider's condition, now and after every reconnect. cause is for people.
func (l *Link) Health(provider string, state nodepb.Health_State, cause string) {
	h := &nodepb.Health{Provider: provider, State: state, Cause: cause}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health[provider] = h
	if l.now != nil {
		l.now.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Health{Health: h}})
	}
}

// up makes s the life to tell health to, and tells what is known; false: it is retired already.
func (l *Link) up(s *life) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.isRetired() {
		return false
	}
	l.now = s
	for _, h := range l.health {
		s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_Health{Health: h}})
	}
	return true
}

// down ends that, unless a later life has taken its place.
func (l *Link) down(s *life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == s {
		l.now = nil
	}
}
