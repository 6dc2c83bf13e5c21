package storage

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"iop/fsm"
)

// Receiver gets the outcome of one command, once, from the dispatcher; it must not block. The error is nil, or one of
// ErrOverloaded, ErrNoLeader, ErrLevel, ErrSessionEnded, ErrFailed, ErrClosed, ErrTooLarge, ErrOutOfStep.
type Receiver = interface {
	Receive(fsm.Outcome, error)
}

// batch is what one session proposes together. Commands are encoded when they are put in, so that nothing can change
// them afterwards, and so that proposing costs the proposer, not the one batcher.
//
// Order: capacity that comes back and links that change go before new requests, so admissions are put behind all the
// rest. All commands of a batch are under way at the same time, so that any order is a true one, unless the proposer
// sends one because of another that it sent before: a Cancel for its Admit. A Cancel whose Admit (or one that looks
// like it) is in the batch therefore goes behind it, and everything after such a Cancel stays in order of proposal.
// Among admissions, and among the rest, the order of proposal stays too: so a Release stays before the LinkLost that
// followed it, and a node's registration before its readiness.
type batch struct {
	lane  *lane
	front part // all but admissions
	back  part // admissions, and what must not overtake them

	asked   nameSet // requests of the admissions in back
	ordered bool    // nothing goes to front any more

	since  time.Duration // of the oldest command, on the store's clock
	hurry  bool          // more than releases that nobody waits for
	seq    uint64        // this and the next two are given when it is taken, and stay when it is sent again
	ack    uint64
	sum    uint64
	queued int64         // bytes that it counts for in the queue
	sent   time.Duration // when it was taken last, on the store's clock
	sends  int           // how often

	// Of another replica: the encoded batch, with its header, and how many commands it has. It has no lane, and nobody
	// here waits for it.
	foreign []byte
	count   int
}

type part struct {
	bytes []byte
	to    []Receiver
	level uint32 // feature level that its commands need
}

func (p *part) add(c fsm.Command, to Receiver) int {
	before := len(p.bytes)
	p.bytes = appendCommand(p.bytes, c)
	p.to = append(p.to, to)
	p.level = max(p.level, readable(c))
	return len(p.bytes) - before
}

// readable is the level that a replica must know to go on behind a command: it stops rather than take part in what it can't
// read, and a state that was raised above what it knows is that.
func readable(c fsm.Command) uint32 {
	if c, ok := c.(*fsm.RaiseLevel); ok {
		return max(c.Level, fsm.LevelFirst)
	}
	return levelOf(c)
}

// add puts a command in and returns how many bytes it took.
func (b *batch) add(c fsm.Command, to Receiver) int {
	switch c := c.(type) {
	case *fsm.Admit:
		b.asked.add(string(c.Request))
		return b.back.add(c, to)
	case *fsm.Submit:
		return b.back.add(c, to)
	case *fsm.Cancel:
		b.ordered = b.ordered || b.asked.has(string(c.Request))
	}
	if b.ordered {
		return b.back.add(c, to)
	}
	return b.front.add(c, to)
}

func (b *batch) size() int { return len(b.front.bytes) + len(b.back.bytes) + len(b.foreign) }

func (b *batch) commands() int { return len(b.front.to) + len(b.back.to) + b.count }

// full tells that nothing more should be added.
func (b *batch) full() bool { return b.size() >= entryBytesMax || b.commands() >= entryCommandsMax }

// each calls fn for the receivers in the order of the commands.
func (b *batch) each(fn func(i int, to Receiver)) {
	for i, to := range b.front.to {
		fn(i, to)
	}
	for i, to := range b.back.to {
		fn(len(b.front.to)+i, to)
	}
}

// batchHeaderMax is the most that the fields before the commands take.
const batchHeaderMax = 3*11 + 9 + 8

func (b *batch) headerSize() int {
	size := 0
	for _, v := range [...]uint64{uint64(b.lane.id), b.seq, b.ack} {
		if v != 0 {
			size += 1 + protowire.SizeVarint(v)
		}
	}
	if b.sum != 0 {
		size += 1 + 8
	}
	return size
}

func (b *batch) appendHeader(dst []byte) []byte {
	dst = appendUint(dst, 1, uint64(b.lane.id))
	dst = appendUint(dst, 2, b.seq)
	dst = appendUint(dst, 3, b.ack)
	return appendFixed(dst, 4, b.sum)
}

// nameSet is a set of names that can say yes wrongly, never no. The zero value is empty.
type nameSet [16]uint64

func (s *nameSet) place(name string) (int, uint64) {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	h ^= h >> 15
	return int(h>>6) % len(s), 1 << (h & 63)
}

func (s *nameSet) add(name string) {
	i, bit := s.place(name)
	s[i] |= bit
}

func (s *nameSet) has(name string) bool {
	i, bit := s.place(name)
	return s[i]&bit != 0
}

// sortBatches sorts by age.
func sortBatches(batches []*batch) {
	slices.SortStableFunc(batches, func(a, b *batch) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.seq, b.seq))
	})
}
