package noded

import (
	"context"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"iop/noded/adapter"
	"iop/proto/nodepb"
)

// station is an adapter in use: by the registry that names it, and by every run on it. The last to leave closes it.
type station struct {
	adapter.Adapter
	plan  stationPlan
	users atomic.Int64
}

// stationPlan is all that an adapter is built from. Equal plans need no new adapter.
type stationPlan struct {
	config *nodepb.AdapterConfig
	key    string   // of the backend; a secret
	models []string // served, in order
	broken string   // why it can't be built; "" if it can
}

func (p stationPlan) equal(q stationPlan) bool {
	return p.key == q.key && p.broken == q.broken && slices.Equal(p.models, q.models) && proto.Equal(p.config, q.config)
}

// newStation returns a station with one user, its registry.
func newStation(a adapter.Adapter, p stationPlan) *station {
	s := &station{Adapter: a, plan: p}
	s.users.Store(1)
	return s
}

// enter counts a user, unless the last one has left already.
func (s *station) enter() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave ends a use.
func (s *station) leave() {
	if s.users.Add(-1) == 0 {
		s.Close()
	}
}

// brokenAdapter stands where an adapter can't be built, so that the others of the node serve on.
type brokenAdapter struct{ cause error }

func (b brokenAdapter) Do(context.Context, *adapter.Call, adapter.Answer) adapter.End {
	return adapter.End{Dispatched: adapter.DispatchedNo, Code: codeMisconfigured, Message: b.cause.Error()}
}

func (b brokenAdapter) Probe(context.Context, string) error { return b.cause }

func (b brokenAdapter) Close() {}
