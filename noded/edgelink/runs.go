package edgelink

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"iop/proto/nodepb"
)

// Runs is what runs on this node, over all links, by generation and run number. All links of a node share one, so that
// any of them can report what still runs of a generation that is gone.
type Runs struct {
	instance uint64

	mu          sync.Mutex
	cluster     string // that the generations are of
	generations map[uint64]*generation
	edges       map[string]*Link // which link holds which edge
	changed     chan struct{}    // closed and replaced when a run of a gone generation ends
}

// NewRuns returns an empty registry for one life of a node.
func NewRuns() *Runs {
	return &Runs{
		instance:    rand.Uint64() | 1, // not 0
		generations: map[uint64]*generation{}, edges: map[string]*Link{}, changed: make(chan struct{}),
	}
}

// hold notes that l is linked to an edge. An edge takes the newest link of a process for the valid one, so two of them
// would throw each other out for ever.
func (r *Runs) hold(edge string, l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edges[edge] = l
}

func (r *Runs) letGo(edge string, l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.edges[edge] == l {
		delete(r.edges, edge)
	}
}

// held tells whether another link than l holds an edge.
func (r *Runs) held(edge string, l *Link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	holder := r.edges[edge]
	return holder != nil && holder != l
}

var (
	errTwoClusters = errors.New("the edges of this node belong to different clusters; name only the edges of one cluster in its configuration")
	errOldCluster  = errors.New("the edge's cluster is a new one, and runs of the former one have not ended yet")
	errGeneration  = errors.New("the edge gave a generation twice")
)

// open begins a generation. Generations are numbers of one cluster, so those of another cluster (an edge that does not
// belong here, or that lost its data directory) may only come when nothing is left of the former.
func (r *Runs) open(cluster string, gen uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cluster != r.cluster {
		for _, g := range r.generations {
			switch {
			case !g.gone:
				return errTwoClusters
			case len(g.running) > 0:
				return errOldCluster
			}
		}
		clear(r.generations)
		r.cluster = cluster
	}
	if g := r.generations[gen]; g != nil && (!g.gone || len(g.running) > 0) {
		return errGeneration
	}
	r.generations[gen] = &generation{running: map[uint64]*running{}, unseen: map[uint64]struct{}{}}
	return nil
}

// start enters a run; false: it was canceled before it came, or its link is gone, and it must not begin.
func (r *Runs) start(gen, run, lease uint64, stop func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	if g == nil || g.gone || run <= g.refused {
		return false
	}
	if len(g.unseen) > 0 {
		if _, ok := g.unseen[run]; ok {
			return false
		}
	}
	g.running[run] = &running{lease: lease, stop: stop}
	return true
}

// end takes a run out. canceled: the edge waits for RunEnded; it counts as told.
func (r *Runs) end(gen, run uint64, o nodepb.Outcome) (canceled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	u := g.running[run]
	delete(g.running, run)
	g.remember(past{run: run, lease: u.lease, outcome: o, told: u.canceled})
	if g.gone {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return u.canceled
}

// tell marks an ended run as told by RunEnded; false: it already was.
func (r *Runs) tell(gen, run uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	if g == nil {
		return false
	}
	p := g.recall(run)
	if p == nil || p.told {
		return false
	}
	p.told = true
	return true
}

// cancel ends a run early. It returns what to answer at once: nothing for a run that goes on until its backend call is
// over, and nothing twice.
func (r *Runs) cancel(gen, run uint64) *nodepb.RunEnded {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	if g == nil || g.gone {
		return nil
	}
	if u := g.running[run]; u != nil {
		u.canceled = true
		u.stop()
		return nil
	}
	p := g.recall(run)
	switch {
	case p != nil && p.told:
		return nil
	case p != nil:
		p.told = true
		return runEnded(run, p.lease, p.outcome, false)
	case run <= g.forgotten:
		return runEnded(run, 0, nodepb.Outcome{Dispatched: "unknown"}, false)
	}
	o := nodepb.Outcome{Dispatched: "no", Code: CodeCanceled}
	g.remember(past{run: run, outcome: o, told: true, unseen: true})
	g.unseen[run] = struct{}{}
	return runEnded(run, 0, o, true)
}

func runEnded(run, lease uint64, o nodepb.Outcome, unseen bool) *nodepb.RunEnded {
	return &nodepb.RunEnded{Run: run, Lease: lease, Dispatched: o.Dispatched, Code: o.Code, Message: o.Message, Unseen: unseen}
}

// lost marks a generation's link as gone and cancels what it started.
func (r *Runs) lost(gen uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	g.gone = true
	for _, u := range g.running {
		u.stop()
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// stop cancels what a living link started.
func (r *Runs) stop(gen uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.generations[gen].running {
		u.stop()
	}
}

// left returns the leases that still run of generations that are gone, and the gone generations that run nothing.
func (r *Runs) left() (leases, empty []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gen, g := range r.generations {
		switch {
		case g.gone && len(g.running) == 0:
			empty = append(empty, gen)
		case g.gone:
			leases = append(leases, g.leases()...)
		}
	}
	slices.Sort(leases)
	return leases, empty
}

// forget drops gone generations of which the cluster knows that they run nothing.
func (r *Runs) forget(empty []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, gen := range empty {
		delete(r.generations, gen)
	}
}

// emptyReports is how often an empty generation is reported: a report can be lost with the link that carries it.
const emptyReports = 3

// reports returns what is to be told of generations that are gone, and forgets those that were told to be empty often
// enough.
func (r *Runs) reports() []*nodepb.LinkReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*nodepb.LinkReport
	for gen, g := range r.generations {
		if !g.gone {
			continue
		}
		list = append(list, &nodepb.LinkReport{Generation: gen, Running: g.leases()})
		if len(g.running) > 0 {
			continue
		}
		if g.reported++; g.reported >= emptyReports {
			delete(r.generations, gen)
		}
	}
	slices.SortFunc(list, func(a, b *nodepb.LinkReport) int { return int(a.Generation) - int(b.Generation) })
	return list
}

// news returns a channel that is closed when something about gone generations changes.
func (r *Runs) news() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// settle waits until nothing runs of gone generations but what is counted.
func (r *Runs) settle(ctx context.Context, counted []uint64) error {
	for {
		news := r.news()
		waits := false
		leases, _ := r.left()
		for _, lease := range leases {
			waits = waits || !slices.Contains(counted, lease)
		}
		if !waits {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
