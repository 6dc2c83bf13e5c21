package edgelink

import (
	"context"
	"slices"

	"iop/proto/nodepb"
)

// fenced notes that the machine no longer counts on a generation's link, though it may live: nothing new begins on it.
// stop: what runs is canceled, as its edge has given it up.
func (r *Runs) fenced(gen uint64, stop bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	if g == nil || g.gone {
		return
	}
	g.ended = true
	if stop {
		for _, u := range g.running {
			u.stop()
		}
	}
	r.tellNews()
}

// emptyReports is how often an empty generation is reported: a report can be lost with the link that carries it.
const emptyReports = 3

// reports returns what is to be told over the link of generation own: of generations that are gone or ended. Those that
// were told to be empty often enough are told no more, and forgotten when their link is gone. Who speaks over a link that
// has ended itself is not heard, so there is nothing to tell there.
func (r *Runs) reports(own uint64) []*nodepb.LinkReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.generations[own]; g == nil || g.ended || g.gone {
		return nil
	}
	var list []*nodepb.LinkReport
	for gen, g := range r.generations {
		if !g.gone && !g.ended {
			continue
		}
		if len(g.running) > 0 {
			list = append(list, &nodepb.LinkReport{Generation: gen, Running: g.leases()})
			continue
		}
		if g.reported < emptyReports {
			g.reported++
			list = append(list, &nodepb.LinkReport{Generation: gen})
		}
		if g.gone && g.reported >= emptyReports {
			delete(r.generations, gen)
		}
	}
	slices.SortFunc(list, func(a, b *nodepb.LinkReport) int { return int(a.Generation) - int(b.Generation) })
	return list
}

// settle ends the runs that a registration named and the machine does not count, over whichever link they came, and waits
// for them. What began since is not its business: it was granted beside the registration, or the gate refuses it.
func (r *Runs) settle(ctx context.Context, named, counted []uint64) error {
	var stray []uint64
	for _, lease := range named {
		if !slices.Contains(counted, lease) {
			stray = append(stray, lease)
		}
	}
	if len(stray) == 0 {
		return nil
	}
	r.await(1)
	defer r.await(-1)
	for {
		news := r.news()
		if !r.stopLeases(stray) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// await counts those who wait for the end of runs of living links.
func (r *Runs) await(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited += n
}

// stopLeases cancels what runs of the leases, and tells whether anything does.
func (r *Runs) stopLeases(leases []uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	some := false
	for _, g := range r.generations {
		for _, u := range g.running {
			if slices.Contains(leases, u.lease) {
				some = true
				u.stop()
			}
		}
	}
	return some
}
