package admission_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

// world is the real machine behind a session in memory: commands are gathered for a moment, applied as one entry, and
// answered by one goroutine, outcomes first and then effects, as the store does it.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	began time.Time
	lag   func() time.Duration // from proposing to applying
	fail  func(fsm.Command) error
	deaf  bool // effects are lost, as by a replica that skips over them with a snapshot

	machine *fsm.Machine
	adm     *admission.Admission
	session fsm.SessionID
	nonce   uint64
	gen     fsm.Generation
	seq     map[fsm.SessionID]uint64
	index   uint64

	returned map[fsm.LeaseID]int
	granted  map[fsm.LeaseID]fsm.ProviderID

	mu    sync.Mutex
	queue []item
	kick  chan struct{}
	stop  chan struct{}
	done  chan struct{}
}

// life is one session of the world.
type life struct {
	w  *world
	id fsm.SessionID
}

func (l life) Propose(cmd fsm.Command, to admission.Receiver) { l.w.propose(l.id, cmd, to) }

type item struct {
	session fsm.SessionID
	cmd     fsm.Command
	to      admission.Receiver
	err     error
}

var errBusy = errors.New("store: busy")

func newWorld(t *testing.T, seed uint64, c fsm.Config) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, seed+1)), began: time.Now(), machine: fsm.New(),
		lag: func() time.Duration { return time.Millisecond }, returned: map[fsm.LeaseID]int{}, seq: map[fsm.SessionID]uint64{}, granted: map[fsm.LeaseID]fsm.ProviderID{},
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		fail: func(fsm.Command) error { return nil },
	}
	w.adm = admission.New(admission.Options{Translate: func(err error) error {
		if errors.Is(err, errBusy) {
			return fmt.Errorf("%w: %w", admission.ErrOverloaded, err)
		}
		return err
	}})
	w.apply(0, &fsm.ApplyConfig{Config: c, Document: []byte("{}")})
	w.open()
	w.register(1)
	go w.run()
	return w
}

// pool is a configuration with one model per provider list: "m" on all, "x" on the first alone.
func pool(maxQueue int, capacities ...int) fsm.Config {
	c := fsm.Config{
		Pool:  fsm.Pool{MaxQueue: maxQueue, QueueTimeout: 2 * fsm.Second, FenceTimeout: fsm.Second, ReattachWindow: fsm.Second},
		Nodes: []fsm.NodeID{"n"}, Models: []fsm.ModelConfig{{ID: "m"}, {ID: "x"}},
	}
	for i, capacity := range capacities {
		id := fsm.ProviderID(fmt.Sprintf("p%d", i))
		c.Providers = append(c.Providers, fsm.ProviderConfig{
			ID: id, Node: "n", Capacity: capacity, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds,
		})
		c.Models[0].Candidates = append(c.Models[0].Candidates, fsm.Candidate{Provider: id, Served: "s"})
	}
	c.Models[1].Candidates = c.Models[0].Candidates[:1]
	return c
}

// open begins a session and attaches it.
func (w *world) open() {
	w.nonce++
	w.session = w.apply(0, &fsm.OpenSession{Edge: "e", Nonce: w.nonce}).Session
	w.adm.Attach(life{w, w.session})
}

// cease ends the session.
func (w *world) cease() {
	w.apply(0, &fsm.EndSession{Edge: "e", Session: w.session, Reason: fsm.ReasonSessionEnded})
}

// renew opens a new session after the old one has ended, and registers the node anew.
func (w *world) renew() {
	w.open()
	w.register(1)
}

// apply applies one command of a session (0 = none) and answers nobody but the caller.
func (w *world) apply(s fsm.SessionID, cmd fsm.Command) fsm.Outcome {
	return w.entry(s, []item{{cmd: cmd}})[0]
}

func (w *world) entry(s fsm.SessionID, items []item) []fsm.Outcome {
	w.index++
	b := fsm.Batch{Session: s}
	if s != 0 {
		w.seq[s]++
		b.Seq, b.AckBelow = w.seq[s], w.seq[s]
	}
	for _, it := range items {
		b.Commands = append(b.Commands, it.cmd)
	}
	e := &fsm.Entry{Index: w.index, Term: 1, Elapsed: fsm.Time(time.Since(w.began)), Batches: []fsm.Batch{b}}
	if at, ok := w.machine.NextDeadline(); ok && at <= e.Elapsed && s != 0 { // an Expire that travels in front
		e.Batches = []fsm.Batch{{Commands: []fsm.Command{&fsm.Expire{Term: 1}}}, b}
	}
	res := w.machine.Apply(e)
	if err := w.machine.Check(); err != nil {
		w.t.Fatalf("entry %d: %v", w.index, err)
	}
	outcomes := append([]fsm.Outcome(nil), res.Outcomes[len(e.Batches)-1]...)
	for i, it := range items {
		w.note(it.cmd, outcomes[i])
		if it.to != nil {
			it.to.Receive(outcomes[i], nil)
		}
	}
	for _, e := range res.Effects {
		switch e.Kind {
		case fsm.EffectGranted:
			w.granted[e.Grant.Lease] = e.Grant.Provider
		case fsm.EffectReturned:
			w.returned[e.Grant.Lease]++
		}
	}
	if w.deaf {
		return outcomes
	}
	w.adm.Effects(append([]fsm.Effect(nil), res.Effects...))
	return outcomes
}

func (w *world) note(cmd fsm.Command, o fsm.Outcome) {
	if o.Code == fsm.Granted {
		w.granted[o.Grant.Lease] = o.Grant.Provider
	}
	if r, ok := cmd.(*fsm.Release); ok {
		switch o.Code {
		case fsm.Returned, fsm.Granted, fsm.Queued, fsm.Refused:
			w.returned[r.Lease]++
		}
	}
}

// register makes a link and readies it.
func (w *world) register(instance uint64) {
	w.gen = w.apply(w.session, &fsm.RegisterNode{Node: "n", Instance: instance}).Generation
	w.apply(w.session, &fsm.NodeReady{Node: "n", Generation: w.gen})
}

func (w *world) propose(s fsm.SessionID, cmd fsm.Command, to admission.Receiver) {
	w.mu.Lock()
	w.queue = append(w.queue, item{session: s, cmd: cmd, to: to, err: w.fail(cmd)})
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// change sets lag or fail while the world runs.
func (w *world) change(set func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set()
}

// do runs fn between two entries.
func (w *world) do(fn func()) {
	ran := make(chan struct{})
	w.propose(0, nil, funcReceiver(func() { fn(); close(ran) }))
	<-ran
}

type funcReceiver func()

func (f funcReceiver) Receive(fsm.Outcome, error) { f() }

func (w *world) run() {
	defer close(w.done)
	for {
		var expiry <-chan time.Time
		if at, ok := w.machine.NextDeadline(); ok {
			expiry = time.After(max(0, time.Duration(at)-time.Since(w.began)))
		}
		select {
		case <-w.kick:
			w.mu.Lock()
			lag := w.lag
			w.mu.Unlock()
			time.Sleep(lag())
		case <-expiry:
			w.apply(0, &fsm.Expire{Term: 1})
			continue
		case <-w.stop:
			return
		}
		w.mu.Lock()
		items := w.queue
		w.queue = nil
		w.mu.Unlock()
		var good []item
		for _, it := range items {
			switch {
			case it.cmd == nil:
				it.to.Receive(fsm.Outcome{}, nil)
			case it.err != nil:
				it.to.Receive(fsm.Outcome{}, it.err)
			default:
				good = append(good, it)
			}
		}
		for len(good) > 0 {
			n := 1
			for n < len(good) && good[n].session == good[0].session {
				n++
			}
			w.entry(good[0].session, good[:n])
			good = good[n:]
		}
	}
}

// end stops the world and checks that nothing is held, queued, or returned other than once.
func (w *world) end() {
	w.t.Helper()
	if err := w.adm.Drain(context.Background()); err != nil {
		w.t.Error(err)
	}
	close(w.stop)
	<-w.done
	if n := w.adm.Open(); n != 0 {
		w.t.Errorf("%d requests are still open", n)
	}
	if n := w.adm.Waiting(); n != 0 {
		w.t.Errorf("%d requests are still in the table", n)
	}
	s := w.machine.Snapshot()
	if s.Queue.Pending != 0 || s.Granted != s.Returned {
		w.t.Errorf("left: %d waiters, %d granted, %d returned", s.Queue.Pending, s.Granted, s.Returned)
	}
	for lease, p := range w.granted {
		if n := w.returned[lease]; n != 1 {
			w.t.Errorf("lease %d of %s was returned %d times", lease, p, n)
		}
	}
}

// client is a Caller made of functions.
type client struct {
	queued   func(position int)
	dispatch func(ctx context.Context, g fsm.Grant) (fsm.Reason, bool)
}

func (c *client) Queued(position int) {
	if c.queued != nil {
		c.queued(position)
	}
}

func (c *client) Dispatch(ctx context.Context, g fsm.Grant, _ time.Duration) (fsm.Reason, bool) {
	if c.dispatch == nil {
		return fsm.ReasonDone, false
	}
	return c.dispatch(ctx, g)
}

func req(id string) admission.Request {
	return admission.Request{ID: fsm.RequestID(id), Model: "m", Needs: fsm.NeedChat}
}
