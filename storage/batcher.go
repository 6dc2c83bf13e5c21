package storage

import (
	"runtime"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// lingerMax is how long releases that nobody waits for may wait for an admission to travel with, while nobody queues
// for a slot: a client that comes back 0.3 ms after its release then has 1.05 entries per request instead of 2.02, and
// does not wait for the release's fsync before its own (BenchmarkSequential: admission 2.8 ms instead of 4.8 ms on a
// busy disk).
const lingerMax = 2 * time.Millisecond

// yields is how often the batcher lets others go first after an entry: those whose outcome it brought can then join the
// next one. Else callers that come back at once fall into two halves, of which one always waits for the other's fsync:
// 64 of them put 63 commands into an entry without, 113 with it, at 1.5 times the speed.
const yields = 4

// tickMax is how often cluster time goes on at least.
const tickMax = 500 * time.Millisecond

// batcher is the one proposer of this replica: it takes all that is queued as one entry and has one entry in flight.
// There is no linger besides lingerMax: the fsync of the entry before is the window in which the next one gathers. A
// second one in flight would only cut entries up: with 64 callers 51 commands per entry instead of 114, and fewer pairs/s.
type batcher struct {
	queue    *queue
	log      consensus
	replica  *replica
	clock    clock
	observe  func(Stat)
	ready    chan struct{} // closed when the first term's barrier is applied
	quit     chan struct{}
	done     chan struct{}
	expiries lane // of session 0, for Expire

	term    uint64        // whose barrier was applied; 0 = not the leader
	ledTerm atomic.Uint64 // the same for others
	expired fsm.Time      // deadline that the last Expire was for
	retryAt time.Duration

	counts counts
}

func (b *batcher) run() {
	defer close(b.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := tickMax
		if b.lead() {
			wait = b.round()
		}
		if wait <= 0 {
			select {
			case <-b.quit:
				return
			default:
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-b.quit:
			return
		case <-timer.C:
		case <-b.queue.kick:
		case <-b.log.changes():
		}
	}
}

// lead tells whether this replica may propose: it is the leader, and has applied everything of the terms before.
func (b *batcher) lead() bool {
	if !b.log.leading() {
		b.term = 0
		b.ledTerm.Store(0)
		return false
	}
	term := b.log.term()
	if term == b.term {
		return true
	}
	if err := b.log.barrier(); err != nil || !b.log.leading() || b.log.term() != term {
		return false
	}
	b.replica.view(func(m *fsm.Machine) { b.clock.anchor(m.Now()) })
	b.term = term
	b.queue.resend(0) // what was sent to, or by, the leader before
	b.ledTerm.Store(term)
	select {
	case <-b.ready:
	default:
		close(b.ready)
	}
	return true
}

// round proposes what there is, and returns how long to wait for more; 0 = look again at once.
func (b *batcher) round() time.Duration {
	now := b.clock.read()
	wait, due := b.untilDeadline(now)
	some, hurry, since := b.queue.state()
	if some && !hurry && !due && b.replica.pending.Load() == 0 {
		if left := lingerMax - (b.clock.monotonic() - since); left > 0 {
			return min(left, wait)
		}
	}
	if !some && !due {
		return wait
	}
	r := record{term: b.term, elapsed: now, wall: time.Now().UnixNano(), batches: b.queue.take()}
	if due {
		r.batches = append(r.batches, b.expire())
	}
	if len(r.batches) > 0 {
		b.propose(&r)
		for range yields {
			runtime.Gosched()
		}
	}
	return 0
}

// untilDeadline tells how long to wait for the machine's next deadline, and whether it has come.
func (b *batcher) untilDeadline(now fsm.Time) (time.Duration, bool) {
	next := fsm.Time(b.replica.deadline.Load())
	if next == 0 {
		return tickMax, false
	}
	if next > now {
		return min(time.Duration(next-now), tickMax), false
	}
	if at := b.clock.monotonic(); next == b.expired && at < b.retryAt { // it was proposed: don't do so in a circle
		return b.retryAt - at, false
	}
	b.expired, b.retryAt = next, b.clock.monotonic()+tickMax/100
	return 0, true
}

// expire returns the batch that ends what is overdue; it goes behind everything else of its entry.
func (b *batcher) expire() *batch {
	out := &batch{lane: &b.expiries}
	out.add(&fsm.Expire{Term: b.term}, nil)
	out.sum = commandSum(out.front.bytes)
	return out
}

func (b *batcher) propose(r *record) {
	start := b.clock.monotonic()
	commands, oldest := 0, start
	for _, batch := range r.batches {
		commands += batch.commands()
		if batch.since > 0 {
			oldest = min(oldest, batch.since)
		}
	}
	data := appendRecord(make([]byte, 0, r.sizeMax()), r)
	if err := b.log.propose(data); err != nil {
		b.lost(r)
		return
	}
	b.counts.entries.Add(1)
	b.counts.commands.Add(uint64(commands))
	b.counts.bytes.Add(uint64(len(data)))
	b.observe(Stat{
		Kind: StatEntry, Commands: commands, Bytes: int64(len(data)),
		Wait: start - oldest, Took: b.clock.monotonic() - start,
		Apply: time.Duration(b.replica.took.Load()),
	})
}

// lost keeps batches whose outcome is unknown for being sent again under the same numbers. Those of no session have no
// number that the machine looks at, but none of their commands does harm when it is done twice: a configuration that was
// applied after all is answered as a conflict that names its own revision.
func (b *batcher) lost(r *record) {
	batches := r.batches
	if n := len(batches); n > 0 && batches[n-1].lane == &b.expiries {
		batches = batches[:n-1] // the next leader proposes its own
	}
	b.queue.lost(batches)
}
