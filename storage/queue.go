package storage

import (
	"sync"
	"time"

	"iop/fsm"
)

// queueBytesMax is how much may be under way before new requests are refused; behindMax how old the oldest may be.
const (
	queueBytesMax = 8 << 20
	behindMax     = time.Second
)

// itemCost is what a queued command counts for beside its bytes.
const itemCost = 64

// queue holds commands from being proposed to having their outcome. All of it is bounded: new requests by queueBytesMax,
// everything else because a request, waiter or link proposes only a few commands and waits for their outcomes.
type queue struct {
	clock func() time.Duration
	kick  chan struct{} // has one item when there may be something to take
	// forward is kick while forwarding is set: then not the batcher takes, but the forwarder.
	forward chan struct{}

	mu       sync.Mutex
	closed   error               // set once nothing is taken any more
	lanes    []*lane             // those with something queued, in turn
	again    []*batch            // of those in flight, what has to be sent again
	flight   map[batchKey]*batch // taken, no outcome yet
	hurried  int                 // batches queued that must not linger
	bytes    int64               // of all under way
	oldest   time.Duration       // since when the oldest in flight is under way, or earlier
	overload uint64
	// What other replicas sent (foreign.go), and whose turn it is.
	foreign      []*batch
	foreignBytes int64
	foreignTurn  bool

	forwarding bool
	noLeader   bool          // there is no leader; how old something is says nothing
	refusing   bool          // there was none for so long that requests are refused
	ledSince   time.Duration // when there was one again
	// How many batches were not delivered yet, and who waits for there being none.
	undelivered int
	draining    []*drained
}

type batchKey struct {
	session fsm.SessionID
	seq     uint64
}

func newQueue(clock func() time.Duration) *queue {
	return &queue{clock: clock, kick: make(chan struct{}, 1), forward: make(chan struct{}, 1), flight: map[batchKey]*batch{}}
}

// wake tells whoever takes. Call with mu held.
func (q *queue) wake() {
	to := q.kick
	if q.forwarding {
		to = q.forward
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// put queues a command. hurry = somebody waits for its outcome. The error is for the receiver.
func (q *queue) put(l *lane, c fsm.Command, to Receiver, hurry bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed != nil:
		return q.closed
	case l.ended != nil:
		return l.ended
	case q.refusing && refusable(c):
		return ErrNoLeader
	case refusable(c) && q.behind():
		q.overload++
		return ErrOverloaded
	}
	b := l.open()
	if b == nil {
		b = &batch{lane: l, since: q.clock()}
		l.queued = append(l.queued, b)
		l.undelivered++
		q.undelivered++
		if !l.listed {
			l.listed = true
			q.lanes = append(q.lanes, l)
		}
		q.wake()
	}
	size := int64(b.add(c, to) + itemCost)
	b.queued += size
	q.bytes += size
	if release, ok := c.(*fsm.Release); (hurry || !ok || release.Requeue) && !b.hurry {
		b.hurry = true
		q.hurried++
		q.wake()
	}
	return nil
}

// refusable tells whether a command may be refused as overloaded: those that begin something. What ends something is
// bounded by what was begun, and refusing it would leak a slot.
func refusable(c fsm.Command) bool {
	switch c.(type) {
	case *fsm.Admit, *fsm.RegisterNode, *fsm.ApplyConfig, *fsm.Drain:
		return true
	}
	return false
}

// behind tells that the log does not keep up. Call with mu held.
func (q *queue) behind() bool {
	if q.bytes >= queueBytesMax {
		return true
	}
	if q.noLeader {
		return false
	}
	since := q.oldest
	if len(q.flight) == 0 {
		if len(q.lanes) == 0 {
			return false
		}
		since = q.lanes[0].queued[0].since
	}
	late := func() bool { return q.clock()-max(since, q.ledSince) > behindMax }
	if !late() || len(q.flight) == 0 {
		return late()
	}
	since = q.clock() // that one may have its outcome, and others came after it: a follower always has some under way
	for _, b := range q.flight {
		since = min(since, b.since)
	}
	q.oldest = since
	return late()
}

// state tells what there is to take: nothing; only releases that nobody waits for, the oldest since then; or more.
func (q *queue) state() (any, hurry bool, since time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.again) > 0 || len(q.foreign) > 0 {
		return true, true, 0
	}
	if len(q.lanes) == 0 {
		return false, false, 0
	}
	return true, q.hurried > 0 || len(q.draining) > 0, q.lanes[0].queued[0].since
}

// take removes what fits into one entry, the lanes in turn. Batches that were sent without a known outcome go first.
func (q *queue) take() []*batch {
	out, fresh := q.takeLocked()
	if len(fresh) == 0 {
		return out
	}
	sums := make([]uint64, len(fresh))
	for i, b := range fresh { // not under the lock: nothing can be added to them any more
		sums[i] = commandSum(b.front.bytes, b.back.bytes)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, b := range fresh {
		b.sum = sums[i]
	}
	return out
}

func (q *queue) takeLocked() (out, fresh []*batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	commands, bytes := 0, 0
	fits := func(b *batch) bool {
		return len(out) == 0 || commands+b.commands() <= entryCommandsMax && bytes+b.size() <= entryBytesMax
	}
	now := q.clock()
	use := func(b *batch) {
		b.sent = now
		b.sends++
		out = append(out, b)
		commands += b.commands()
		bytes += b.size()
	}
	for len(q.again) > 0 && fits(q.again[0]) {
		use(q.again[0])
		q.again = q.again[1:]
	}
	if q.foreignTurn = !q.foreignTurn; q.foreignTurn {
		q.takeForeign(fits, use)
	}
	for len(q.again) == 0 && len(q.lanes) > 0 && fits(q.lanes[0].queued[0]) {
		b := q.shift()
		use(b)
		fresh = append(fresh, b)
	}
	q.takeForeign(fits, use)
	return out, fresh
}

func (q *queue) takeForeign(fits func(*batch) bool, use func(*batch)) {
	for len(q.foreign) > 0 && !q.forwarding && fits(q.foreign[0]) {
		use(q.foreign[0])
		q.foreignBytes -= int64(len(q.foreign[0].foreign))
		q.foreign[0] = nil
		q.foreign = q.foreign[1:]
	}
}

// shift takes the first batch of the first lane, numbers it, and puts the lane behind the others.
func (q *queue) shift() *batch {
	l := q.lanes[0]
	b := l.queued[0]
	l.queued[0] = nil
	l.queued = l.queued[1:]
	q.lanes = q.lanes[1:]
	if len(l.queued) > 0 {
		q.lanes = append(q.lanes, l)
	} else {
		l.queued, l.listed = nil, false
	}
	if b.hurry {
		q.hurried--
	}
	l.next++
	b.seq, b.ack = l.next, l.next
	if len(l.flight) > 0 {
		b.ack = l.flight[0].seq
	}
	if l.id == 0 {
		b.ack = 0
	}
	l.flight = append(l.flight, b)
	if len(q.flight) == 0 || b.since < q.oldest {
		q.oldest = b.since
	}
	q.flight[batchKey{l.id, b.seq}] = b
	return b
}

// close has nothing taken any more. With all it returns everything under way: what is in flight, then what is queued.
func (q *queue) close(why error, all bool) []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed == nil || all {
		q.closed = why
	}
	if !all {
		return nil
	}
	var out []*batch
	for _, b := range q.flight {
		out = append(out, b)
	}
	sortBatches(out)
	clear(q.flight)
	q.again = nil
	for len(q.lanes) > 0 {
		out = append(out, q.unqueue(q.lanes[0])...)
	}
	return out
}

func (q *queue) figures() (bytes int64, overloaded uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes, q.overload
}
