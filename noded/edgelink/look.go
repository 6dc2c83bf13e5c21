package edgelink

import (
	"context"

	"iop/proto/nodepb"
)

// looksMax is how many looks of one edge are answered at the same time. Beyond it the answer is that there are too many.
const looksMax = 4

// look answers a Look, beside everything else that the link does.
func (s *life) look(ctx context.Context, q *nodepb.Look) {
	answer := func(a *nodepb.BackendStatus) {
		a.N, a.Provider = q.N, q.Provider
		s.send(&nodepb.NodeFrame{Frame: &nodepb.NodeFrame_BackendStatus{BackendStatus: a}})
	}
	if s.l.o.Look == nil {
		answer(&nodepb.BackendStatus{Error: "this node does not look at its backends"})
		return
	}
	select {
	case s.looks <- struct{}{}:
	default:
		answer(&nodepb.BackendStatus{Error: "too many look at this node's backends at the moment"})
		return
	}
	s.looking.Go(func() {
		defer func() { <-s.looks }()
		answer(s.l.o.Look(ctx, q.Provider))
	})
}
