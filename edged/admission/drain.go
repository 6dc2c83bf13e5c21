package admission

import (
	"context"
	"fmt"
	"slices"
)

// Stop refuses new requests with ErrStopping. Those that wait or run go on.
func (a *Admission) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
}

// Drain stops, and waits until every request has ended and every release is in the log. When ctx ends first, it sends
// those that still wait away with ErrStopping, keeping their places for when their clients come again, and tells in its
// error how many requests are left running.
func (a *Admission) Drain(ctx context.Context) error {
	a.mu.Lock()
	a.stopping = true
	if a.open == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.idle == nil {
		a.idle = make(chan struct{})
	}
	idle := a.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	a.TurnAway()
	return fmt.Errorf("drain admission: %d requests still open: %w", a.Open(), context.Cause(ctx))
}

// TurnAway sends all that wait away with ErrStopping. Their places are kept for when their clients come again.
func (a *Admission) TurnAway() {
	a.mu.Lock()
	a.stopping, a.turned = true, true
	a.mu.Unlock()
	for _, t := range a.all() {
		t.turn(ErrStopping)
	}
	for _, t := range a.unadmitted() {
		t.finish(ErrStopping)
	}
}

// unadmitted takes out the requests that wait for a session.
func (a *Admission) unadmitted() (list []*ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parked = slices.DeleteFunc(a.parked, func(p parked) bool {
		if p.e < toAdmit {
			return false
		}
		list = append(list, p.t)
		return true
	})
	return list
}

// Close ends what is left after the session has ended or the log has failed: all that wait get ErrStopping.
func (a *Admission) Close() {
	a.TurnAway()
	a.endWaiting(ErrStopping)
}
