package edgelink

import (
	"context"
	"time"

	"iop/proto/nodepb"
)

// configureWait is how long a run waits for the configuration that it needs. It is on its way in front of the run, over
// another connection, so it takes no longer than the adapters take to be built.
const configureWait = 5 * time.Second

// holds notes that a configuration of the edge was taken up, or refused: runs that need it wait no longer.
func (s *life) holds(revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision > s.held {
		s.held = revision
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

// await holds a run until the node has the configuration that it needs. After configureWait, or if the run ends meanwhile,
// it goes on: gate and adapters then say what they think of it.
func (s *life) await(ctx context.Context, r *nodepb.Request) {
	revision := r.Revision
	held, moved := s.holding()
	if held >= revision {
		return
	}
	timer := time.NewTimer(configureWait)
	defer timer.Stop()
	for held < revision {
		select {
		case <-moved:
			held, moved = s.holding()
		case <-ctx.Done():
			return
		case <-s.dead:
			return
		case <-timer.C:
			s.l.o.Logger.Warn("a run's configuration has not come", "request", r.ID, "generation", s.generation, "needs", revision, "has", held)
			return
		}
	}
}

func (s *life) holding() (uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.moved
}
