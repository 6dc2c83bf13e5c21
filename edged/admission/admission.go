package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"iop/edged/metrics"
	"iop/fsm"
)

// Receiver takes the outcome of one command, once.
type Receiver = interface {
	Receive(fsm.Outcome, error)
}

// Session is where commands are proposed: storage.Session. Propose must not block.
type Session interface {
	Propose(cmd fsm.Command, to Receiver)
}

// Caller is the one whose request it is. Both methods are called by the goroutine that called Run.
type Caller = interface {
	// Queued tells the place in the queue, from 1 (0 = its old place): once when the request was queued and then each
	// Request.Tick while it waits.
	Queued(position int)
	// Dispatch runs the request on the granted slot and returns when the run is really over: why the lease goes back,
	// and whether the request goes back to its old place instead of ending (the backend provably did not run it, and
	// the client has seen nothing).
	Dispatch(ctx context.Context, g fsm.Grant, waited time.Duration) (why fsm.Reason, requeue bool)
}

// Reporter is a Caller that knows what its run used. It is asked once Dispatch has returned.
type Reporter = interface{ Used() fsm.Usage }

// Request is what is asked for.
type Request struct {
	ID          fsm.RequestID
	Fingerprint fsm.Fingerprint
	Model       fsm.ModelID
	Class       fsm.Class
	InputTokens int64 // estimated; 0 = unknown
	Needs       fsm.Needs
	Provider    fsm.ProviderID // it alone, beside the queue; "" = the model's candidates
	Served      string         // with Provider: the model's name there
	Principal   fsm.PrincipalID
	Token       string        // token_ref
	Metered     bool          // count its runs in the ledger; what they used is asked of a Caller that is a Reporter
	MaxWait     fsm.Time      // shortens the queue timeout; 0 = as configured
	Tick        time.Duration // how often Caller.Queued is repeated; 0 = never
	Trace       string        // id of its trace, for metrics; "" = it is not recorded
}

// Options are what New needs.
type Options struct {
	// Metrics may be nil.
	Metrics *metrics.Metrics
	// Translate turns an error of the session into one that wraps ErrOverloaded, ErrNoLeader, ErrSessionEnded or
	// ErrFailed; nil = the session returns those itself. What it does not know counts as failed.
	Translate func(error) error
	// Position reads a waiter's present place for Queued; nil = the place it was queued at is repeated.
	Position func(fsm.RequestID) int
	// Level is the feature level of what may be proposed: below LevelPrincipals nothing tells whose requests they are, below
	// LevelPlaces a place that the log has lost can't be claimed. nil = the highest.
	Level func() uint32
	// QueueTimeout is how long a request may wait for a slot as it is configured now, 0 = for ever; nil = for ever.
	QueueTimeout func() fsm.Time
	// Patience is how long a request waits for the log to say anything at all about it, which it does only while the
	// cluster has a leader and this edge a session; then it gets ErrNoLeader. 0 = 10 s.
	Patience time.Duration
}

// Admission leads the requests of one edge. Its methods can be called from any goroutine.
type Admission struct {
	o    Options
	m    *metrics.Metrics
	now  atomic.Pointer[attached] // nil: between two sessions
	rate rate

	mu        sync.Mutex // guards the rest
	waiting   map[fsm.RequestID]*ticket
	live      map[fsm.RequestID]int // requests that have not come to their end, by their names
	parked    []parked
	bells     bells
	abandoned bool // no further session comes
	open      int  // requests and leases that have not come to their end
	stopping  bool
	turned    bool          // waiters are sent away: Drain's bound is over
	idle      chan struct{} // closed when open falls to 0; nil = nobody waits for it
}

// Feature levels.
const (
	// LevelPrincipals is that of Principal, Token and Metered.
	LevelPrincipals = 3
	// LevelPlaces is that of fsm.Admit.Place and fsm.Release.Unsent.
	LevelPlaces = 5
)

// has tells whether what is of a feature level may be proposed.
func (a *Admission) has(level uint32) bool { return a.o.Level == nil || a.o.Level() >= level }

// patience is the default of Options.Patience.
const patience = 10 * time.Second

// New returns an admission in which everything waits for the first Attach.
func New(o Options) *Admission {
	if o.Patience <= 0 {
		o.Patience = patience
	}
	a := &Admission{o: o, m: o.Metrics, waiting: map[fsm.RequestID]*ticket{}, live: map[fsm.RequestID]int{}}
	if a.m == nil {
		a.m = metrics.New()
	}
	a.rate.start(time.Now())
	return a
}

// Run leads a request to its end. It returns nil if Dispatch had the last word; else a *Refused, ErrOverloaded,
// ErrNoLeader, ErrStopping, ErrSessionEnded, ErrFailed, or the error of ctx. When ctx ends while the request waits, it returns at
// once; a slot that was granted in the meantime is given back behind it. The release of a lease is proposed before Run
// returns; it does not wait for its outcome.
func (a *Admission) Run(ctx context.Context, r Request, c Caller) error {
	t := newTicket(a, &r)
	if err := a.begin(t); err != nil {
		return err
	}
	t.propose(toAdmit)
	for first := true; ; first = false {
		g, err := t.await(ctx, c, r.Tick)
		if err != nil {
			return err
		}
		waited := time.Since(t.began)
		if first {
			a.m.Model(string(r.Model)).Wait(waited, r.Trace)
		}
		why, requeue := t.dispatch(ctx, c, g, waited)
		if !requeue || ctx.Err() != nil {
			t.used(c)
			t.release(why, false)
			return nil
		}
		a.m.Requeued()
		t.anew()
		t.release(why, true)
	}
}

// used notes what the run used, for the release.
func (t *ticket) used(c Caller) {
	if r, ok := c.(Reporter); ok && t.admit.Metered {
		t.usage = r.Used()
	}
}

// anew begins the patience of a request again that goes back to its place.
func (t *ticket) anew() {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.late = t.a.bell(time.Now())
}

// dispatch calls the caller; should it panic, the lease still goes back.
func (t *ticket) dispatch(ctx context.Context, c Caller, g fsm.Grant, waited time.Duration) (why fsm.Reason, requeue bool) {
	ended := false
	defer func() {
		if !ended {
			t.release(fsm.ReasonBackendError, false)
		}
	}()
	why, requeue = c.Dispatch(ctx, g, waited)
	ended = true
	return why, requeue
}

// Waiting is how many of this edge's requests are in the queue.
func (a *Admission) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting)
}

// Open is how many requests and leases of this edge have not come to their end.
func (a *Admission) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// RetryAfter estimates when a refused request may find a place: the time in which the requests that wait here would be
// served at the present rate of releases. Between 1 s and 60 s, in whole seconds.
func (a *Admission) RetryAfter() time.Duration { return a.rate.estimate(time.Now(), a.Waiting()) }

// begin counts a request in.
func (a *Admission) begin(t *ticket) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return ErrStopping
	}
	a.open++
	a.live[t.admit.Request]++
	t.late = a.bell(t.began)
	return nil
}

// ended counts a request out.
func (a *Admission) ended(id fsm.RequestID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.live[id]--; a.live[id] == 0 {
		delete(a.live, id)
	}
	a.open--
	if a.open == 0 && a.idle != nil {
		close(a.idle)
		a.idle = nil
	}
}
