package edgelink

import (
	"errors"
	"fmt"
	"time"

	"iop/proto/nodepb"
)

// reasonSessionEnded is the LinkEnded.reason of a link whose edge may live: it only lost its quorum, or opened a new session.
// Its runs go on. For every other reason the edge has given them up.
const reasonSessionEnded = "session_ended"

var errRetired = errors.New("the edge's session has ended")

// linkEnded takes the word that a generation, of whichever edge, is no longer current.
func (s *life) linkEnded(e *nodepb.LinkEnded) {
	lives := e.Reason == reasonSessionEnded
	own := e.Generation == s.generation
	s.l.o.Logger.Info("a link has ended", "edge", s.l.o.Address, "generation", e.Generation, "own", own, "cause", e.Reason)
	if own && !lives {
		s.finish(fmt.Errorf("the edge ended the link: %s", e.Reason))
		return
	}
	s.l.o.Runs.fenced(e.Generation, !lives)
	if own {
		close(s.retired)
	}
}

// members hands on where the edges are.
func (s *life) members(u *nodepb.MembershipUpdate) {
	m := Membership{Cluster: s.cluster, Index: u.Index, Edges: map[string]string{}}
	for _, e := range u.Edges {
		if e.Id != "" && e.Address != "" {
			m.Edges[e.Id] = e.Address
		}
	}
	s.l.o.Members(m)
}

func (s *life) isRetired() bool {
	select {
	case <-s.retired:
		return true
	default:
		return false
	}
}

// begin counts a run that is served; the returned function is called when its outcome is sent.
func (s *life) begin() (over func()) {
	s.active.Add(1)
	return func() {
		if s.active.Add(-1) == 0 && s.isRetired() {
			select {
			case s.idle <- struct{}{}:
			default:
			}
		}
	}
}

// spent tells that the link is retired and has nothing left to carry.
func (s *life) spent() bool { return s.isRetired() && s.active.Load() == 0 }

// rest leaves it to the edge to close a spent link, as it knows when it has read everything; but not for ever.
func (s *life) rest(bound *time.Timer) {
	if s.spent() {
		bound.Reset(s.silenceMax)
	}
}
