package nodelink

import (
	"context"
	"errors"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Errors of Look.
var (
	ErrNotLinked   = errors.New("the node has no link to this edge")
	ErrNoStatus    = errors.New("the node does not answer; its noded may be too old to look at its backends")
	errManyLookers = errors.New("too many look at this node's backends at the moment")
)

const (
	// lookWait is for a node's answer: it gives its backend two seconds.
	lookWait = 3 * time.Second
	// looksMax bounds the looks of one link that wait.
	looksMax = 64
)

// Look asks a node what the backend of one of its providers tells of itself. It is for people: nothing is decided by it,
// and nothing is asked while nobody looks.
func (l *Links) Look(ctx context.Context, node fsm.NodeID, provider fsm.ProviderID) (*nodepb.BackendStatus, error) {
	k := l.linked(node)
	if k == nil {
		return nil, ErrNotLinked
	}
	n, answer, err := k.looks.begin()
	if err != nil {
		return nil, err
	}
	defer k.looks.end(n)
	k.send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Look{Look: &nodepb.Look{N: n, Provider: string(provider)}}})
	timer := time.NewTimer(lookWait)
	defer timer.Stop()
	select {
	case s := <-answer:
		return s, nil
	case <-k.lost:
		return nil, ErrNotLinked
	case <-timer.C:
		return nil, ErrNoStatus
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// linked returns the node's link in being, nil if there is none.
func (l *Links) linked(node fsm.NodeID) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links[node]
}

// looks are the looks of one link that wait.
type looks struct {
	k       *link // whose mu guards what follows
	next    uint64
	waiting map[uint64]chan *nodepb.BackendStatus
}

func (s *looks) begin() (uint64, <-chan *nodepb.BackendStatus, error) {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if len(s.waiting) >= looksMax {
		return 0, nil, errManyLookers
	}
	if s.waiting == nil {
		s.waiting = map[uint64]chan *nodepb.BackendStatus{}
	}
	s.next++
	answer := make(chan *nodepb.BackendStatus, 1)
	s.waiting[s.next] = answer
	return s.next, answer, nil
}

func (s *looks) end(n uint64) {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	delete(s.waiting, n)
}

// told gives an answer to who waits for it, and reports whether anybody does.
func (s *looks) told(a *nodepb.BackendStatus) bool {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	answer, ok := s.waiting[a.N]
	if ok {
		delete(s.waiting, a.N)
		answer <- a
	}
	return ok
}
