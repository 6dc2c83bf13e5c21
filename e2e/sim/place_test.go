package sim

import (
	"iop/edged/admission"
	"iop/fsm"
)

// places are what each request of a living edge was told of its place in the queue. One that is admitted again, because its
// session ended, must not come out behind it: nobody of a living edge loses his place, unless another client has it, who came
// again elsewhere with the same request.
type places struct {
	w     *world
	of    map[admission.Receiver]fsm.Enqueue
	owner map[fsm.Enqueue]fsm.RequestID
	taken map[fsm.Enqueue]bool // by another request
}

func newPlaces(w *world) *places {
	return &places{w: w, of: map[admission.Receiver]fsm.Enqueue{}, owner: map[fsm.Enqueue]fsm.RequestID{}, taken: map[fsm.Enqueue]bool{}}
}

// watched is a receiver of an Admit, each time the same one for the same request.
func (p *places) watched(a *fsm.Admit, to admission.Receiver) func(fsm.Outcome, error) {
	return func(o fsm.Outcome, err error) {
		if err == nil && o.Code == fsm.Queued {
			was, again := p.of[to]
			switch {
			case again && o.Enqueue > was && !p.taken[was]:
				p.w.failf("waiter %s of an edge that lives had place %d and has %d now", a.Request, was, o.Enqueue)
			case again:
				p.w.tally["waiters admitted again"]++
			}
			if a.Place > 0 && o.Enqueue == a.Place {
				p.w.tally["places got again"]++
			}
			p.of[to] = o.Enqueue
		}
		to.Receive(o, err)
	}
}

// see looks who has which place after an entry.
func (p *places) see(img *fsm.Image) {
	for i := range img.Requests {
		r := &img.Requests[i]
		if was, known := p.owner[r.Enqueue]; known && was != r.ID {
			p.taken[r.Enqueue] = true
		}
		p.owner[r.Enqueue] = r.ID
	}
}

// claims counts the requests of an entry that may have come back to a place after they had ended.
func claims(e *fsm.Entry, res fsm.Result) (n uint64) {
	for i := range e.Batches {
		for j, c := range e.Batches[i].Commands {
			if a, ok := c.(*fsm.Admit); ok && a.Place > 0 && res.Outcomes[i][j].Code != fsm.Refused {
				n++
			}
		}
	}
	return n
}
