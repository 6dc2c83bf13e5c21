package storage

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"iop/fsm"
)

// Session is one life of an edge: its commands are numbered, so that none is done twice, and the effects on its
// requests and links come to it.
type Session struct {
	store   *Store
	lane    *lane
	edge    fsm.EdgeID
	effects func([]fsm.Effect)
	over    chan struct{} // closed by the dispatcher when the session is known to have ended
}

// OpenSession begins a life of an edge, which ends the one before. effects is called by the one dispatcher goroutine
// with what happens later to the session's requests and links, in the order of the log: for one entry of the log first
// the outcomes of its commands are given to their receivers, then its effects. An EffectLinkFenced comes to every
// session, whoever's link it was. An EffectConfig comes to every session, in front of the outcomes of its entry. It must
// not block, and must not keep the slice. After an effect that says so, the session has ended.
func (s *Store) OpenSession(ctx context.Context, edge fsm.EdgeID, effects func([]fsm.Effect)) (*Session, error) {
	nonce, err := random()
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	x := &Session{store: s, lane: &lane{}, edge: edge, effects: effects, over: make(chan struct{})}
	to := &opening{waiter: newWaiter(), session: x}
	s.put(s.plain, &fsm.OpenSession{Edge: edge, Nonce: nonce}, to, true)
	o, err := to.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	if o.Code != fsm.SessionOpened {
		return nil, fmt.Errorf("open session of edge %q: %v", edge, o.Refusal)
	}
	return x, nil
}

// opening receives the outcome of OpenSession. The dispatcher knows it, so that the session is there before its first
// effect comes.
type opening struct {
	*waiter
	session *Session
}

// random returns a number that is not 0.
func random() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]) | 1, nil
}

// ID returns the session's id.
func (x *Session) ID() fsm.SessionID { return x.lane.id }

// Ended is closed when this process knows that the session has ended, by the effect that says so or by an outcome; not by
// the end of the store. It is closed before either is delivered.
func (x *Session) Ended() <-chan struct{} { return x.over }

// Propose has a command carried out. It never blocks. to gets the outcome when it is on disk, or an error; once, from
// the dispatcher, in the order of the log. The command may be changed when Propose has returned. A plain Release may be
// held back for up to 2 ms so that it travels with the next request.
func (x *Session) Propose(cmd fsm.Command, to Receiver) { x.store.put(x.lane, cmd, to, false) }

// Do is Propose for callers that wait. If ctx ends first, the command may still take effect.
func (x *Session) Do(ctx context.Context, cmd fsm.Command) (fsm.Outcome, error) {
	return x.store.do(ctx, x.lane, cmd)
}

// End ends the session after everything proposed before; what is proposed later gets ErrSessionEnded. The links of the
// edge are fenced, its waiters detached.
func (x *Session) End(ctx context.Context, r fsm.Reason) error {
	if err := x.store.queue.drain(ctx, x.lane); err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	o, err := x.store.Do(ctx, &fsm.EndSession{Edge: x.edge, Session: x.lane.id, Reason: r})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	if o.Code == fsm.Stale {
		return ErrSessionEnded
	}
	return nil
}

// waiter is a Receiver that somebody waits for.
type waiter struct{ got chan received }

type received struct {
	outcome fsm.Outcome
	err     error
}

func newWaiter() *waiter { return &waiter{got: make(chan received, 1)} }

// Receive implements Receiver.
func (w *waiter) Receive(o fsm.Outcome, err error) { w.got <- received{o, err} }

func (w *waiter) wait(ctx context.Context) (fsm.Outcome, error) {
	select {
	case r := <-w.got:
		return r.outcome, r.err
	case <-ctx.Done():
		return fsm.Outcome{}, ctx.Err()
	}
}
