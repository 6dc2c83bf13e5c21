package storage

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// replica is the machine with the lock that readers share, fed by consensus.
type replica struct {
	cluster string // id, for snapshots
	queue   *queue
	out     *dispatcher
	fail    func(error)

	decode decoder // belongs to apply
	halted bool    // an entry could not be understood: nothing is applied any more

	applied  atomic.Uint64
	bytes    atomic.Uint64 // of the entries applied since the start
	pending  atomic.Int64
	deadline atomic.Int64 // the machine's next, as fsm.Time; 0 = none
	took     atomic.Int64 // how long the machine took over the last entry, in nanoseconds
	captured atomic.Int64 // how long the last capture took, in nanoseconds

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
	r.noted()
	r.mu.Unlock()
	r.applied.Store(index)
	r.bytes.Add(uint64(len(data)))
	for i := range e.Batches {
		in := &e.Batches[i]
		if b := r.queue.answered(in.Session, in.Seq, in.Sum); b != nil {
			h.answers = append(h.answers, answer{batch: b, outcomes: res.Outcomes[i]})
		}
	}
	if len(h.answers) > 0 || len(h.effects) > 0 {
		r.out.hand(h)
	}
}

// noted keeps beside the machine what is read often. Call with mu held.
func (r *replica) noted() {
	r.pending.Store(int64(r.machine.Pending()))
	next, ok := r.machine.NextDeadline()
	if !ok {
		next = 0
	}
	r.deadline.Store(int64(next))
}

func (r *replica) capture() (capture, error) {
	start := time.Now()
	r.mu.RLock()
	img := r.machine.Image()
	r.mu.RUnlock()
	r.captured.Store(int64(time.Since(start)))
	return &imageCapture{cluster: r.cluster, image: img}, nil
}

type imageCapture struct {
	cluster string
	image   *fsm.Image
}

func (c *imageCapture) write(w io.Writer) error { return writeImage(w, c.cluster, c.image) }

func (r *replica) restore(from io.Reader) error {
	cluster, img, err := readImage(from)
	if err != nil {
		return err
	}
	if cluster != r.cluster {
		return fmt.Errorf("%w: it is of cluster %s, this directory of cluster %s", ErrDamaged, cluster, r.cluster)
	}
	m, err := fsm.Restore(img)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.mu.Lock()
	r.machine = m
	r.noted()
	r.mu.Unlock()
	r.applied.Store(img.Index)
	return nil
}
