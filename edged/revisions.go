package edged

import (
	"slices"
	"sync"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

// revisionsMax is how many revisions an edge remembers.
const revisionsMax = 100

// revisions are the last ones that this edge has seen, the newest last. The zero value is empty.
type revisions struct {
	mu   sync.Mutex
	seen []adminapi.ConfigRevision
}

func (r *revisions) add(x adminapi.ConfigRevision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == revisionsMax {
		r.seen = slices.Delete(r.seen, 0, 1)
	}
	r.seen = append(r.seen, x)
}

// list gives them, the newest first.
func (r *revisions) list() []adminapi.ConfigRevision {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.seen)
	slices.Reverse(out)
	return out
}

// readRevision describes the revision that the machine has now.
func (d *Daemon) readRevision(source, edge string) adminapi.ConfigRevision {
	r := adminapi.ConfigRevision{Source: source, Edge: edge}
	var wall int64
	d.store.View(func(m *fsm.Machine) {
		r.Revision, r.Index, wall = uint64(m.Revision()), m.Index(), m.Wall()
	})
	r.Time = time.Unix(0, wall).UTC()
	return r
}
