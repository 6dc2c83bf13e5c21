package edged

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"iop/fsm"
	"iop/storage"
)

var (
	// errNoSession says that the cluster has ended this edge's session and the next one is not open yet.
	errNoSession = errors.New("this edge has no session with its cluster at the moment")
	// errReplaced ends an edge: two that take each other's session away would serve nobody.
	errReplaced = errors.New("another process has opened a session with this edge's id: two edges must not have the same edge.id")
)

// sessionWait bounds how long a command of the links waits for the next session. It is shorter than a node waits for the
// answer to its registration.
const sessionWait = 4 * time.Second

// reopenPause is between two attempts to open a session.
const reopenPause = 100 * time.Millisecond

// tenure is this edge's part in the cluster: one session after the other, as they may be ended while the edge lives. It is
// what the links know as their Commands.
type tenure struct {
	store   *storage.Store
	edge    fsm.EdgeID
	log     *slog.Logger
	effects func([]fsm.Effect)

	mu    sync.Mutex
	now   *storage.Session // nil: between two
	over  bool             // no further one comes
	moved chan struct{}    // closed and replaced when now or over changes
}

func newTenure(store *storage.Store, edge fsm.EdgeID, log *slog.Logger, effects func([]fsm.Effect)) *tenure {
	return &tenure{store: store, edge: edge, log: log, effects: effects, moved: make(chan struct{})}
}

// open begins the first session, which ends that of the edge's life before.
func (t *tenure) open(ctx context.Context) (*storage.Session, error) {
	var x *storage.Session
	err := patiently(ctx, func() (err error) {
		x, err = t.store.OpenSession(ctx, t.edge, t.effects)
		return err
	})
	if err == nil {
		t.set(x)
	}
	return x, err
}

// reopen begins the next session, trying until ctx ends or the store does. It fails with errReplaced if a session of this
// edge is open that is not ours.
func (t *tenure) reopen(ctx context.Context) (*storage.Session, error) {
	for {
		if t.taken() {
			return nil, errReplaced
		}
		x, err := t.store.OpenSession(ctx, t.edge, t.effects)
		if err == nil || ctx.Err() != nil || errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrClosed) {
			return x, err
		}
		t.log.Debug("no session yet", "error", err)
		timer := time.NewTimer(reopenPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// taken tells whether this edge has a session in the log, after ours has ended there.
func (t *tenure) taken() (taken bool) {
	t.store.View(func(m *fsm.Machine) { _, taken = m.CurrentSession(t.edge) })
	return taken
}

func (t *tenure) set(x *storage.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.now = x
	}
	t.tell()
}

// lost notes that a session has ended.
func (t *tenure) lost(x *storage.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == x {
		t.now = nil
		t.tell()
	}
}

// close says that no further session comes, and returns the one there is.
func (t *tenure) close() *storage.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.tell()
	return t.now
}

func (t *tenure) tell() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// current returns the session, nil between two, and what is closed when that changes.
func (t *tenure) current() (x *storage.Session, moved <-chan struct{}, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.moved, t.over
}

// Do has a command of the links carried out in the session that there is, or in the next one if it ends meanwhile: it had
// no effect then.
func (t *tenure) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	timer := time.NewTimer(sessionWait)
	defer timer.Stop()
	for {
		x, moved, over := t.current()
		if x != nil {
			o, err := x.Do(ctx, cmd)
			if !errors.Is(err, storage.ErrSessionEnded) {
				return o, err
			}
			t.lost(x)
			continue
		}
		if over {
			return fsm.Outcome{}, storage.ErrSessionEnded
		}
		select {
		case <-moved:
		case <-timer.C:
			return fsm.Outcome{}, errNoSession
		case <-ctx.Done():
			return fsm.Outcome{}, ctx.Err()
		}
	}
}

// keepSession opens a new session whenever the one there is ends while the edge lives: because its cluster had not heard of
// it, or an operator ended it. What runs goes on over the transports there are; the nodes register anew beside them, and
// who waits gets his place back. It returns nil when ctx ends, else why there can be none.
func (d *Daemon) keepSession(ctx context.Context) error {
	for x, _, _ := d.tenure.current(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-x.Ended():
		}
		began := time.Now()
		d.tenure.lost(x)
		d.links.Load().Effects([]fsm.Effect{{Kind: fsm.EffectSessionEnded, Session: x.ID(), Edge: d.tenure.edge}})
		d.admission.Detach()
		d.log.Warn("this edge's session was ended; what runs goes on, and a new session is opened", "session", x.ID(), "waiting", d.admission.Waiting())
		next, err := d.tenure.reopen(ctx)
		switch {
		case errors.Is(err, errReplaced):
			d.tenure.close()
			d.admission.Abandon()
			return err
		case err != nil: // the edge stops, or its store has failed, which is told elsewhere
			return nil
		}
		d.configured() // a change of the configuration is told to sessions, and there was none
		d.admission.Attach(next)
		d.tenure.set(next)
		d.metrics.SessionReopened()
		d.log.Info("session opened", "session", next.ID(), "after", time.Since(began).Round(time.Millisecond).String())
		x = next
	}
}

// EndSession has the log end this edge's session, as the cluster does that has not heard of it for a while. The edge lives
// and opens another one. It returns when the old one has ended.
func (d *Daemon) EndSession(ctx context.Context) error {
	x, _, _ := d.tenure.current()
	if x == nil {
		return errNoSession
	}
	end := &fsm.EndSession{Edge: d.tenure.edge, Session: x.ID(), Reason: fsm.ReasonSessionEnded, Alive: true, Apart: true}
	_, err := d.store.Do(ctx, end)
	for _, later := range []*bool{&end.Apart, &end.Alive} {
		if errors.Is(err, storage.ErrLevel) {
			*later = false
			_, err = d.store.Do(ctx, end)
		}
	}
	return err
}
