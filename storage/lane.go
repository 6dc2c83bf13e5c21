package storage

import (
	"context"
	"slices"

	"iop/fsm"
)

// lane is what one session has under way. Session 0 (no session) has one too; its numbers only tell batches apart.
type lane struct {
	id     fsm.SessionID
	next   uint64 // number of the next batch
	queued []*batch
	flight []*batch // taken, no outcome yet, by number
	ended  error    // set once nothing more is taken; what proposals are answered with
	listed bool     // it is in queue.lanes

	undelivered int // batches queued, in flight, or on their way to the receivers
}

// open returns the batch that the next command joins, nil if there is none.
func (l *lane) open() *batch {
	if len(l.queued) == 0 || l.queued[len(l.queued)-1].full() {
		return nil
	}
	return l.queued[len(l.queued)-1]
}

// end has a lane take nothing more and returns what it had queued, in order. What is in flight gets its outcome.
func (q *queue) end(l *lane, why error) []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.ended == nil {
		l.ended = why
	}
	return q.unqueue(l)
}

func (q *queue) unqueue(l *lane) []*batch {
	out := l.queued
	for _, b := range out {
		if b.hurry {
			q.hurried--
		}
	}
	l.queued = nil
	if l.listed {
		l.listed = false
		q.lanes = slices.DeleteFunc(q.lanes, func(other *lane) bool { return other == l })
	}
	return out
}

// drain has a lane take nothing more and waits until all that it had under way was answered. A nil lane is all of them.
func (q *queue) drain(ctx context.Context, l *lane) error {
	q.mu.Lock()
	if l != nil && l.ended == nil {
		l.ended = ErrSessionEnded
	}
	empty := make(chan struct{})
	d := &drained{lane: l, empty: empty}
	q.draining = append(q.draining, d)
	q.settleDrains()
	q.wake()
	q.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drained waits for a lane, or all, to have nothing under way.
type drained struct {
	lane  *lane
	empty chan struct{}
}

// settleDrains tells those who wait for nothing to be under way. Call with mu held.
func (q *queue) settleDrains() {
	q.draining = slices.DeleteFunc(q.draining, func(d *drained) bool {
		busy := q.undelivered > 0 || len(q.lanes) > 0
		if d.lane != nil {
			busy = d.lane.undelivered > 0
		}
		if !busy {
			close(d.empty)
		}
		return !busy
	})
}
