package sim

import (
	"time"

	"iop/fsm"
	"iop/storage"
)

// log is the one log of the cluster: what is committed, and the leader that commits. An entry of a leader that goes is
// lost, or committed by the next one after all.
type log struct {
	w       *world
	records []record
	leader  int // edge; -1 = none
	term    uint64
	inbox   []fsm.Batch // at the leader
	limbo   []byte      // an entry of the leader before, of limboTerm
	limboOf uint64

	stamp  fsm.Time  // last one given
	read   time.Time // when it was given
	speed  int       // of the leader's clock, in percent; 0 = 100
	asked  time.Time // when the last Expire was proposed
	lost   time.Time // since when there is no leader that can commit; zero = there is
	commas uint64    // entries, for holes in the numbers
}

// record is a committed entry.
type record struct {
	index, term uint64
	data        []byte
	digest      [32]byte // of a machine that has applied it
}

func (l *log) last() uint64 {
	if len(l.records) == 0 {
		return 0
	}
	return l.records[len(l.records)-1].index
}

// lead makes an edge the leader, -1 none. late = what the old one had under way is committed by the new one.
func (l *log) lead(n int, under, late bool) {
	if l.leader >= 0 && under && len(l.inbox) > 0 {
		l.limbo, l.limboOf = storage.EncodeEntry(&fsm.Entry{Term: l.term, Elapsed: l.now(), Wall: l.w.wallNow(), Batches: l.inbox}), l.term
	}
	l.inbox = nil
	l.leader = n
	if n < 0 {
		return
	}
	l.term++
	if l.limbo != nil && late {
		l.w.tally["late entries"]++
		l.append(l.limboOf, l.limbo)
	}
	l.limbo = nil
	l.w.edges[n].apply(1 << 30)
	l.stamp, l.read, l.speed = l.w.see.machine.Now(), time.Now(), 0
}

// now reads the leader's clock.
func (l *log) now() fsm.Time {
	step := time.Since(l.read)
	if l.speed > 0 {
		step = step * time.Duration(l.speed) / 100
	}
	l.read = time.Now()
	l.stamp += fsm.Time(min(step, time.Second))
	return l.stamp
}

// accept takes a batch that arrived at the leader, from an edge that reaches it.
func (l *log) accept(from *edge, b fsm.Batch) {
	if l.leader >= 0 && l.w.edges[l.leader].up && from.reaches(l.w.edges[l.leader]) {
		l.inbox = append(l.inbox, b)
	}
}

// commit makes an entry of up to n batches. stale = with an Expire of an earlier term.
func (l *log) commit(n int, stale bool) {
	if l.w.plan.quorum {
		l.elect()
	}
	if !l.leads() {
		return
	}
	n = min(n, len(l.inbox))
	batches := append([]fsm.Batch(nil), l.inbox[:n]...)
	l.inbox = l.inbox[n:]
	now := l.now()
	if at, ok := l.w.see.machine.NextDeadline(); ok && at <= now && (len(batches) == 0 || time.Since(l.asked) > 50*time.Millisecond) {
		l.asked = time.Now()
		batches = append(batches, fsm.Batch{Seq: 1<<40 + l.commas, Commands: []fsm.Command{&fsm.Expire{Term: l.term}}})
	}
	batches = append(batches, l.reap()...)
	if stale && l.term > 1 {
		batches = append(batches, fsm.Batch{Seq: 1<<41 + l.commas, Commands: []fsm.Command{&fsm.Expire{Term: l.term - 1}}})
	}
	if len(batches) > 0 {
		l.append(l.term, storage.EncodeEntry(&fsm.Entry{Term: l.term, Elapsed: now, Wall: l.w.wallNow(), Batches: batches}))
	}
}

func (l *log) append(term uint64, data []byte) {
	l.commas++
	r := record{index: l.last() + 1 + l.commas%3/2, term: term, data: data} // elections and the like take numbers too
	r.digest = l.w.see.apply(&r)
	l.records = append(l.records, r)
	l.w.tally["entries"]++
}

// decode reads a committed entry.
func (l *log) decode(r *record) *fsm.Entry {
	e, err := storage.DecodeEntry(r.index, r.term, r.data)
	if err != nil {
		l.w.failf("committed entry can't be read: %v", err)
	}
	return e
}

func (w *world) wallNow() int64 { return time.Now().Add(w.wall).UnixNano() }
