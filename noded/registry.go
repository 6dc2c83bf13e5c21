package noded

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"iop/noded/gate"
	"iop/proto/nodepb"
)

// registry is one configuration, ready to run. It is never changed, only replaced.
type registry struct {
	revision uint64
	payload  *nodepb.NodeConfigPayload
	places   map[string]place      // by adapter id
	watches  map[string]*watch     // by provider id
	types    map[string]string     // by provider id
	windows  map[string]int64      // by provider id: context_window_tokens
	gates    map[string]*gate.Gate // by provider id; outlives a configuration, so that no running run is forgotten
}

// place is where an adapter is reached.
type place struct{ station *station }

func emptyRegistry() *registry { return &registry{gates: map[string]*gate.Gate{}} }

// same reports whether the registry is this configuration already.
func (r *registry) same(revision uint64, p *nodepb.NodeConfigPayload) bool {
	return r.payload != nil && r.revision == revision && proto.Equal(r.payload, p)
}

// next builds the registry that follows r. Adapters, gates and watches of what has not changed go over to it. Each of
// its stations counts it as a user.
func (r *registry) next(b builder, revision uint64, p *nodepb.NodeConfigPayload) (*registry, error) {
	if err := checkPayload(p); err != nil {
		return nil, err
	}
	n := &registry{
		revision: revision,
		payload:  p,
		places:   map[string]place{},
		watches:  map[string]*watch{},
		types:    map[string]string{},
		windows:  map[string]int64{},
		gates:    map[string]*gate.Gate{},
	}
	for id, g := range r.gates {
		if g.InFlight() > 0 {
			n.gates[id] = g
		}
	}
	for _, c := range p.GetAdapters() {
		n.place(r, b, c)
	}
	for _, c := range p.GetProviders() {
		n.watch(r, b.rhythm, c)
		n.gate(r, c)
	}
	return n, nil
}

// place takes the adapter over from r if nothing about it has changed, else builds it.
func (n *registry) place(r *registry, b builder, c *nodepb.AdapterConfig) {
	id, providers := c.GetId(), n.payload.GetProviders()
	plan := b.plan(c, servedBy(providers, id))
	s := r.places[id].station
	if s == nil || !s.plan.equal(plan) || !s.enter() {
		s = b.build(plan)
	}
	n.places[id] = place{station: s}
}

// gate takes the gate of a provider over from r, with its new capacity. Providers on one adapter have gates of their own:
// what still runs above a lowered capacity of one must not take the place of another's.
func (n *registry) gate(r *registry, c *nodepb.ProviderConfig) {
	g, capacity := r.gates[c.GetId()], int(c.GetCapacity())
	if g == nil {
		g = gate.New(capacity)
	} else {
		g.SetCapacity(capacity, loweredGrace)
	}
	n.gates[c.GetId()] = g
}

// loweredGrace is how long a run that was granted under a higher capacity may be on its way here. An edge that stood still
// for longer has lost the link.
const loweredGrace = 10 * time.Second

// watch takes the watch of a provider over from r if nothing about it has changed, else makes it.
func (n *registry) watch(r *registry, pace rhythm, c *nodepb.ProviderConfig) {
	s := n.places[c.GetAdapter()].station
	w := r.watches[c.GetId()]
	if w == nil || !w.same(c, s) {
		w = newWatch(c, s, pace)
	}
	n.watches[c.GetId()] = w
	n.types[c.GetId()] = c.GetType()
	n.windows[c.GetId()] = int64(min(c.GetContextWindowTokens(), math.MaxInt64))
}

// leave ends the registry's own use of its stations.
func (r *registry) leave() {
	for _, p := range r.places {
		p.station.leave()
	}
}

// checkPayload refuses what can't be run as a whole. A single adapter that can't be built is no such thing.
func checkPayload(p *nodepb.NodeConfigPayload) error {
	var errs []error
	adapters := map[string]bool{}
	for _, a := range p.GetAdapters() {
		if a.GetId() == "" || adapters[a.GetId()] {
			errs = append(errs, fmt.Errorf("adapter id %q is empty or given twice", a.GetId()))
		}
		adapters[a.GetId()] = true
	}
	providers := map[string]bool{}
	for _, c := range p.GetProviders() {
		if c.GetId() == "" || providers[c.GetId()] {
			errs = append(errs, fmt.Errorf("provider id %q is empty or given twice", c.GetId()))
		}
		providers[c.GetId()] = true
		if !adapters[c.GetAdapter()] {
			errs = append(errs, fmt.Errorf("provider %s names the adapter %q, which is not there", c.GetId(), c.GetAdapter()))
		}
	}
	return errors.Join(errs...)
}
