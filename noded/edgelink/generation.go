package edgelink

import (
	"slices"

	"iop/proto/nodepb"
)

// generation is the runs of one link.
type generation struct {
	edge    string
	running map[uint64]*running
	past    [pastMax]past // ring of runs that ended, or were canceled before they came
	pastAt  int
	// Of what the ring has forgotten: runs up to forgotten may have ended, runs up to refused must not begin.
	forgotten, refused uint64
	unseen             map[uint64]struct{} // canceled before they came
	gone               bool                // the link is lost
	// ended: the machine counts the link no more as one to give work over, while it may live: nothing new begins, what
	// runs goes on and is reported over other links.
	ended    bool
	reported int // how often its emptiness was reported
}

// pastMax is how many ended runs of a generation are remembered, for a Cancel that crosses the end.
const pastMax = 1024

type running struct {
	lease    uint64
	stop     func() // ends its context and closes its connection
	canceled bool
}

type past struct {
	run     uint64
	lease   uint64
	outcome nodepb.Outcome
	told    bool // RunEnded was sent
	unseen  bool
}

// recall finds an ended run that is remembered.
func (g *generation) recall(run uint64) *past {
	for i := range g.past {
		if g.past[i].run == run {
			return &g.past[i]
		}
	}
	return nil
}

// remember keeps an ended run, in the place of the oldest.
func (g *generation) remember(p past) {
	old := g.past[g.pastAt]
	if old.unseen {
		delete(g.unseen, old.run)
		g.refused = max(g.refused, old.run)
	}
	g.forgotten = max(g.forgotten, old.run)
	g.past[g.pastAt] = p
	g.pastAt = (g.pastAt + 1) % pastMax
}

// leases are those of what runs, sorted.
func (g *generation) leases() []uint64 {
	leases := make([]uint64, 0, len(g.running))
	for _, u := range g.running {
		leases = append(leases, u.lease)
	}
	slices.Sort(leases)
	return leases
}
