package storage

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// replica is the machine with the lock that readers share, fed by consensus.
type replica struct {
	cluster func() string // id, for snapshots
	queue   *queue
	out     *dispatcher
	fail    func(error)
	told    func(index, term uint64) // told of each entry that was applied; nil = nobody
	missed  func()                   // told when the state has jumped over entries; nil = nobody
	digests *digests                 // nil = no checks
	vault   *vault                   // of payloads; nil = they are not kept

	decode decoder // belongs to apply
	halted bool    // an entry could not be understood: nothing is applied any more

	applied  atomic.Uint64
	bytes    atomic.Uint64 // of the entries applied since the start
	pending  atomic.Int64
	deadline atomic.Int64 // the machine's next, as fsm.Time; 0 = none
	took     atomic.Int64 // how long the machine took over the last entry, in nanoseconds
	captured atomic.Int64 // how long the last capture took, in nanoseconds
	level    atomic.Uint32
	waits    waits // who waits for an entry to be applied

	mu      sync.RWMutex
	machine *fsm.Machine
}

func (r *replica) view(fn func(*fsm.Machine)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	fn(r.machine)
}

// apply never blocks on anybody outside.
func (r *replica) apply(index, term uint64, data []byte) {
	if r.halted {
		return
	}
	e, err := r.decode.entry(data)
	if err != nil {
		r.halted = true
		r.fail(fmt.Errorf("log entry %d can't be applied: %w; run the version that wrote it or a newer one", index, err))
		return
	}
	e.Index, e.Term = index, term
	r.mu.Lock()
	start := time.Now()
	res := r.machine.Apply(e)
	r.took.Store(int64(time.Since(start)))
	h := handover{effects: append([]fsm.Effect(nil), res.Effects...)}
	full := len(res.Writes) > 0 && r.vault != nil && r.vault.add(index, res.Writes)
	r.noted()
	if r.digests != nil {
		r.digests.applied(index, r.machine.Image)
		r.digests.marked(e, r.machine.Image)
	}
	r.mu.Unlock()
	if full {
		_ = r.vault.flush(0) // it has told
	}
	r.applied.Store(index)
	r.bytes.Add(uint64(len(data)))
	if r.told != nil {
		r.told(index, term)
	}
	for i := range e.Batches {
		if a, ok := r.answer(&e.Batches[i], res.Outcomes[i]); ok {
			h.answers = append(h.answers, a)
		}
	}
	if len(h.answers) > 0 || len(h.effects) > 0 {
		r.out.hand(h)
	}
	r.waits.reached(index)
	if r.digests != nil {
		for _, c := range res.Checks {
			r.digests.compare(c)
		}
	}
}

// answer returns what a batch's receivers are told if it is of this process.
func (r *replica) answer(in *fsm.Batch, outcomes []fsm.Outcome) (answer, bool) {
	if len(outcomes) > 0 && outcomes[0].Code == fsm.SequenceGap {
		r.queue.gap(in.Session, in.Seq, in.Sum)
		return answer{}, false
	}
	b := r.queue.answered(in.Session, in.Seq, in.Sum)
	if b == nil {
		return answer{}, false
	}
	if in.Session == 0 && b.sends > 1 {
		outcomes = r.settled(in.Commands, outcomes)
	}
	return answer{batch: b, outcomes: outcomes}, true
}

// settled looks at commands of no session that were sent more than once: a configuration that conflicts with itself was
// applied the first time.
func (r *replica) settled(commands []fsm.Command, outcomes []fsm.Outcome) []fsm.Outcome {
	for i, c := range commands {
		apply, ok := c.(*fsm.ApplyConfig)
		if !ok || outcomes[i].Code != fsm.Refused || outcomes[i].Refusal != fsm.RefusalConflict {
			continue
		}
		r.view(func(m *fsm.Machine) {
			if bytes.Equal(m.Document(), apply.Document) && m.Revision() == apply.Expected+1 {
				outcomes = slices.Clone(outcomes)
				outcomes[i] = fsm.Outcome{Code: fsm.Applied, Revision: m.Revision(), Count: 1}
			}
		})
	}
	return outcomes
}

// noted keeps beside the machine what is read often. Call with mu held.
func (r *replica) noted() {
	r.pending.Store(int64(r.machine.Pending()))
	next, ok := r.machine.NextDeadline()
	if !ok {
		next = 0
	}
	r.deadline.Store(int64(next))
	r.level.Store(r.machine.Level())
}

func (r *replica) capture() (capture, error) {
	start := time.Now()
	r.mu.RLock()
	img := r.machine.Image()
	r.mu.RUnlock()
	r.captured.Store(int64(time.Since(start)))
	return &imageCapture{cluster: r.cluster(), image: img, vault: r.vault}, nil
}

type imageCapture struct {
	cluster string
	image   *fsm.Image
	vault   *vault // nil = none
}

// write writes the state, once the vault has all that it presumes.
func (c *imageCapture) write(w io.Writer) error {
	if c.vault != nil {
		if err := c.vault.flush(c.image.Index); err != nil {
			return err
		}
	}
	return writeImage(w, c.cluster, c.image)
}

func (r *replica) restore(from io.Reader) error {
	cluster, img, err := readImage(from)
	if err != nil {
		return err
	}
	if own := r.cluster(); cluster != own {
		return fmt.Errorf("%w: it is of cluster %s, this directory of cluster %s", ErrDamaged, cluster, own)
	}
	m, err := fsm.Restore(img)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if r.vault != nil && len(img.Responses) > 0 {
		if err := r.vault.knows(img.Index); err != nil {
			r.fail(err)
			return err
		}
	}
	r.mu.Lock()
	r.machine = m
	r.noted()
	r.mu.Unlock()
	r.applied.Store(img.Index)
	r.waits.reached(img.Index)
	if r.missed != nil {
		r.missed()
	}
	return nil
}
