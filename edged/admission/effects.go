package admission

import (
	"errors"
	"fmt"
	"time"

	"iop/fsm"
)

// Effects takes what the log says later about this edge's requests. It must be called by the dispatcher that calls the
// receivers, for each entry after its outcomes.
func (a *Admission) Effects(effects []fsm.Effect) {
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case fsm.EffectGranted:
			if t := a.take(e.Grant.Request); t != nil {
				t.granted(e.Grant)
			}
		case fsm.EffectEnded:
			if t := a.take(e.Request); t != nil {
				t.finish(&Refused{Why: e.Refusal})
			}
		case fsm.EffectReturned:
			// The run itself ends through its link; its own release will then find nothing to return.
			a.m.Returned(e.Reason.String())
			a.rate.add(time.Now())
		case fsm.EffectSessionEnded:
			a.Detach()
		}
	}
}

// problem is the error in an answer, or nil.
func (a *Admission) problem(o fsm.Outcome, err error) error {
	if err != nil {
		if a.o.Translate != nil {
			err = a.o.Translate(err)
		}
		for _, known := range []error{ErrOverloaded, ErrNoLeader, ErrSessionEnded, ErrFailed} {
			if errors.Is(err, known) {
				return err
			}
		}
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	switch o.Code {
	case fsm.SessionEnded:
		return ErrSessionEnded
	case fsm.SequenceGap, fsm.SequenceForgotten, fsm.SequenceCollision:
		return fmt.Errorf("%w: %s", ErrFailed, o.Code)
	}
	return nil
}

func (a *Admission) endWaiting(err error) {
	for _, t := range a.all() {
		t.finish(err)
	}
}
