package adminapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Bounds of Picture.Pulse, the same as those of the edge.
const (
	PulseSeconds = 600
	PulseMinutes = 720
)

// Picture is what the frames of one GET /live add up to. The zero value is ready for a whole. It is not safe for
// concurrent use.
type Picture struct {
	// Head has the numbers of the newest frame; its lists are nil.
	Head Frame
	// Members are those of the newest frame that had some.
	Members []LiveMember

	providers map[string]Provider
	nodes     map[string]Node
	leases    map[uint64]LiveLease
	waiters   map[string]LiveWaiter
	seconds   []Sample
	minutes   []Sample
}

// ErrGap says that frames were missed: the picture is of no use until a whole comes. Connect anew.
var ErrGap = errors.New("frames of the live feed were missed")

// Apply brings the picture up to date. After ErrGap it is as it was before.
func (p *Picture) Apply(f *Frame) error {
	switch {
	case f.Whole:
		*p = Picture{
			providers: map[string]Provider{}, nodes: map[string]Node{}, leases: map[uint64]LiveLease{}, waiters: map[string]LiveWaiter{},
		}
	case p.providers == nil || f.Seq != p.Head.Seq+1:
		return fmt.Errorf("%w: after %d came %d", ErrGap, p.Head.Seq, f.Seq)
	}
	renew(p.providers, f.ProvidersGone, f.Providers, func(x *Provider) string { return x.ID })
	renew(p.nodes, f.NodesGone, f.Nodes, func(x *Node) string { return x.ID })
	renew(p.leases, f.LeasesGone, f.Leases, func(x *LiveLease) uint64 { return x.ID })
	renew(p.waiters, f.WaitersGone, f.Waiters, func(x *LiveWaiter) string { return x.Request })
	if f.Members != nil {
		p.Members = f.Members
	}
	for _, s := range f.Pulse {
		if s.StepMS == 1000 {
			p.seconds = keep(p.seconds, s, PulseSeconds)
		} else {
			p.minutes = keep(p.minutes, s, PulseMinutes)
		}
	}
	p.Head = *f
	p.Head.Providers, p.Head.ProvidersGone, p.Head.Nodes, p.Head.NodesGone = nil, nil, nil, nil
	p.Head.Leases, p.Head.LeasesGone, p.Head.Waiters, p.Head.WaitersGone = nil, nil, nil, nil
	p.Head.Members, p.Head.Pulse = nil, nil
	return nil
}

func renew[K comparable, V any](rows map[K]V, gone []K, changed []V, id func(*V) K) {
	for _, k := range gone {
		delete(rows, k)
	}
	for i := range changed {
		rows[id(&changed[i])] = changed[i]
	}
}

func keep(list []Sample, s Sample, most int) []Sample {
	if len(list) >= 2*most { // rarely, so that a sample costs little
		list = append(list[:0], list[len(list)-most+1:]...)
	}
	return append(list, s)
}

// Providers gives them by id.
func (p *Picture) Providers() []Provider {
	return sorted(p.providers, func(a, b Provider) int { return cmp.Compare(a.ID, b.ID) })
}

// Nodes gives them by id.
func (p *Picture) Nodes() []Node {
	return sorted(p.nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
}

// Leases gives them by id, the oldest first.
func (p *Picture) Leases() []LiveLease {
	return sorted(p.leases, func(a, b LiveLease) int { return cmp.Compare(a.ID, b.ID) })
}

// Waiters gives them in the order of the queue.
func (p *Picture) Waiters() []LiveWaiter {
	return sorted(p.waiters, func(a, b LiveWaiter) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Request, b.Request))
	})
}

// Seconds gives the samples of a second, the newest last, at most PulseSeconds. It is not to be changed.
func (p *Picture) Seconds() []Sample { return p.seconds[max(0, len(p.seconds)-PulseSeconds):] }

// Minutes gives the samples of a minute, the newest last, at most PulseMinutes. It is not to be changed.
func (p *Picture) Minutes() []Sample { return p.minutes[max(0, len(p.minutes)-PulseMinutes):] }

func sorted[K comparable, V any](rows map[K]V, by func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(rows), by)
}
