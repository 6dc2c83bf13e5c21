package edgelink

import (
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
	changed     chan struct{}    // closed and replaced when a run ends that somebody waits for or must hear of
	awaited     int              // how many wait for the end of runs of living links
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

// holding tells whether any link holds an edge.
func (r *Runs) holding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.edges) > 0
}

var (
	errTwoClusters = errors.New("the edges of this node belong to different clusters; name only the edges of one cluster in its configuration")
	errOldCluster  = errors.New("the edge's cluster is a new one, and runs of the former one have not ended yet")
	errGeneration  = errors.New("the edge gave a generation twice")
)

// open begins a generation. Generations are numbers of one cluster, so those of another cluster (an edge that does not
// belong here, or that lost its data directory) may only come when nothing is left of the former.
func (r *Runs) open(cluster, edge string, gen uint64) error {
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
	r.generations[gen] = &generation{edge: edge, running: map[uint64]*running{}, unseen: map[uint64]struct{}{}}
	return nil
}

// start enters a run; false: it was canceled before it came, or its link is gone or has ended, and it must not begin.
func (r *Runs) start(gen, run, lease uint64, stop func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.generations[gen]
	if g == nil || g.gone || g.ended || run <= g.refused {
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
	if g.gone || g.ended || r.awaited > 0 {
		r.tellNews()
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
	r.tellNews()
}

// tellNews wakes those who wait; r is locked.
func (r *Runs) tellNews() {
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

// left returns the leases of all that runs, over whichever link, and the gone generations that run nothing.
func (r *Runs) left() (leases, empty []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gen, g := range r.generations {
		leases = append(leases, g.leases()...)
		if g.gone && len(g.running) == 0 {
			empty = append(empty, gen)
		}
	}
	slices.Sort(leases)
	return leases, empty
}

// forget drops gone generations of an edge that run nothing: the cluster knows it. It takes a registration for the word on
// that edge's generations alone; of others it is told by reports.
func (r *Runs) forget(edge string, empty []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, gen := range empty {
		if g := r.generations[gen]; g != nil && g.edge == edge {
			delete(r.generations, gen)
		}
	}
}

// news returns a channel that is closed when something about gone generations changes.
func (r *Runs) news() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}
