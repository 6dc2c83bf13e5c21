package storage

import (
	"slices"
	"time"

	"iop/fsm"
)

// lost puts batches back whose outcome is unknown. They keep their numbers, so that nothing is done twice. Those of other
// replicas are sent again by these.
func (q *queue) lost(batches []*batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range batches {
		if b.foreign == nil && q.flight[batchKey{b.lane.id, b.seq}] == b && !slices.Contains(q.again, b) { // else its outcome came after all
			q.again = append(q.again, b)
		}
	}
	sortBatches(q.again)
	q.wake()
}

// resend puts everything under way back if any of it was sent longer ago than that and has no outcome.
func (q *queue) resend(after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if after > 0 {
		if len(q.again) > 0 || len(q.flight) == 0 {
			return
		}
		late := false
		now := q.clock()
		for _, b := range q.flight {
			late = late || now-b.sent > after
		}
		if !late {
			return
		}
	}
	q.again = q.again[:0]
	for _, b := range q.flight {
		if b.sum != 0 { // else it is just being sent for the first time
			q.again = append(q.again, b)
		}
	}
	sortBatches(q.again)
	if len(q.again) > 0 {
		q.wake()
	}
}

// gap has everything of a session that is under way sent again, in order: the log has a later batch than the machine
// expects, so one before got lost on its way.
func (q *queue) gap(session fsm.SessionID, seq, sum uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.flight[batchKey{session, seq}]
	if b == nil || b.sum != sum || slices.Contains(q.again, b) {
		return
	}
	for _, x := range b.lane.flight {
		if x.sum != 0 && !slices.Contains(q.again, x) {
			q.again = append(q.again, x)
		}
	}
	sortBatches(q.again)
	q.wake()
}

// setForwarding says who takes what is queued: the forwarder, or the batcher.
func (q *queue) setForwarding(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.forwarding == on {
		return
	}
	q.forwarding = on
	if on {
		q.foreign, q.foreignBytes = nil, 0 // sent when this replica led: the others send them again, to the next leader
	}
	q.wake()
}

// led says whether there is a leader.
func (q *queue) led(yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noLeader = !yes
	if yes {
		q.refusing, q.ledSince = false, q.clock()
	}
}

// answered returns the batch that an applied one belongs to, nil if it is not of this process or was answered before.
func (q *queue) answered(session fsm.SessionID, seq, sum uint64) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := batchKey{session, seq}
	b := q.flight[key]
	if b == nil || b.sum != sum {
		return nil
	}
	delete(q.flight, key)
	q.again = without(q.again, b)
	b.lane.flight = without(b.lane.flight, b)
	return b
}

func without(list []*batch, b *batch) []*batch {
	if i := slices.Index(list, b); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// delivered tells that a batch's receivers were called.
func (q *queue) delivered(b *batch) {
	q.mu.Lock()
	q.bytes -= b.queued
	b.lane.undelivered--
	q.undelivered--
	if len(q.draining) > 0 {
		q.settleDrains()
	}
	q.mu.Unlock()
}
