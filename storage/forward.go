package storage

import (
	"context"
	"sync"
	"time"
)

// Forwarding, on a replica that does not lead: what is queued goes to the leader over one lane, batch by batch, and
// counts as under way until this replica itself applies it. Only a verdict comes back, which says that the leader's
// queue has it; the next is sent after it, so that commands gather meanwhile. Nothing that is sent is ever taken for
// done: after a change of leader, a broken lane, or resendAfter without an outcome, all that is under way is sent again,
// in order and under the same numbers, so that the machine does nothing twice.

const (
	// resendAfter is how long an outcome may take before all that is under way is sent again.
	resendAfter = time.Second
	// forwardRetry is how long to wait after a leader could not be reached, or took nothing.
	forwardRetry = 20 * time.Millisecond
	// verdictWait bounds waiting for a verdict.
	verdictWait = 2 * time.Second
)

// forwarder owns the lane to the leader.
type forwarder struct {
	group *group
	kick  chan struct{}

	lane    *openLane
	to      string        // whose lane it is
	resting bool          // nothing new is looked at before the wait is over: the leader took nothing
	without time.Duration // since when there is no leader, on the store's clock; 0 = there is one
}

func newForwarder(g *group) *forwarder {
	return &forwarder{group: g, kick: make(chan struct{}, 1)}
}

func (f *forwarder) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

func (f *forwarder) run() {
	defer f.drop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	q := f.group.store.queue
	for {
		f.resting = false
		wait := f.round()
		if f.group.ctx.Err() != nil {
			return
		}
		if wait <= 0 {
			continue
		}
		more := q.forward
		if f.resting {
			more = nil
		}
		timer.Reset(wait)
		select {
		case <-f.group.ctx.Done():
			return
		case <-f.group.store.failed:
			return
		case <-timer.C:
		case <-f.kick:
		case <-more:
		}
	}
}

// round sends what there is to send, and returns how long to wait for more; 0 = look again at once.
func (f *forwarder) round() time.Duration {
	s, q := f.group.store, f.group.store.queue
	leader := f.group.log.leader()
	f.watchLeader(leader)
	if leader == "" || leader == s.options.Replica {
		f.drop()
		q.setForwarding(false)
		q.resend(resendAfter) // what an old leader may have accepted when this replica already led
		return keepEach
	}
	q.setForwarding(true)
	if f.lane == nil || f.to != leader {
		if !f.open(leader) {
			f.resting = true
			return forwardRetry
		}
		q.resend(0)
	}
	q.resend(resendAfter)
	some, hurry, since := q.state()
	if !some {
		return keepEach
	}
	if !hurry && s.replica.pending.Load() == 0 {
		if left := lingerMax - (q.clock() - since); left > 0 {
			return left
		}
	}
	batches := q.take()
	if len(batches) == 0 {
		return keepEach
	}
	return f.send(batches)
}

// watchLeader refuses what could not be sent once there was no leader for too long.
func (f *forwarder) watchLeader(leader string) {
	q := f.group.store.queue
	now := q.clock()
	switch {
	case leader != "":
		if f.without != 0 {
			f.without = 0
			q.led(true)
		}
	case f.without == 0:
		f.without = now
		q.led(false)
	case now-f.without > leaderless:
		f.group.store.out.refuse(q.leaderless())
	}
}

// open opens the lane to the leader.
func (f *forwarder) open(leader string) bool {
	f.drop()
	to, ok := f.group.book.find(leader)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(f.group.ctx, verdictWait)
	defer cancel()
	lane, err := f.group.options.Network.Forward(ctx, to)
	if err != nil {
		f.group.logger.Debug("the leader can't be reached", "leader", leader, "error", err)
		return false
	}
	f.lane, f.to = carry(lane), leader
	return true
}

// drop gives the lane up; what was sent over it and has no outcome is sent again over the next one.
func (f *forwarder) drop() {
	if f.lane != nil {
		f.lane.close()
		f.lane = nil
	}
}

// send sends batches and waits for the verdict.
func (f *forwarder) send(batches []*batch) time.Duration {
	q := f.group.store.queue
	verdict, ok := f.exchange(appendBatches(nil, batches))
	if ok && verdict == VerdictAccepted {
		return 0
	}
	q.lost(batches)
	if !ok || verdict != VerdictOverloaded {
		f.drop()
	}
	f.resting = true
	return forwardRetry
}

// exchange waits for a verdict, as long as the leader is the leader.
func (f *forwarder) exchange(data []byte) (Verdict, bool) {
	f.lane.in <- data
	timeout := time.NewTimer(verdictWait)
	defer timeout.Stop()
	for {
		select {
		case v := <-f.lane.out:
			return v, v != 0
		case <-f.kick:
			if f.group.log.leader() != f.to {
				return 0, false
			}
		case <-timeout.C:
			return 0, false
		case <-f.group.ctx.Done():
			return 0, false
		case <-f.group.store.failed:
			return 0, false
		}
	}
}

// openLane is a lane with the goroutine that waits for it. The forwarder gives it one message at a time.
type openLane struct {
	lane  Lane
	in    chan []byte
	out   chan Verdict // 0 = the lane is broken
	group sync.WaitGroup
}

func carry(l Lane) *openLane {
	o := &openLane{lane: l, in: make(chan []byte, 1), out: make(chan Verdict, 1)}
	o.group.Go(o.run)
	return o
}

func (o *openLane) run() {
	for data := range o.in {
		var v Verdict
		err := o.lane.Send(data)
		if err == nil {
			v, err = o.lane.Recv()
		}
		if err != nil {
			v = 0
		}
		o.out <- v
	}
}

func (o *openLane) close() {
	_ = o.lane.Close()
	close(o.in)
	o.group.Wait()
}
