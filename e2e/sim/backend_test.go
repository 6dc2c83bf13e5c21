package sim

import (
	"slices"

	"iop/fsm"
)

// countCalls is the backend's own count when a call begins: never more calls at the same time than the capacity, which
// is the largest that the provider had since the call's slot was granted. The node's gate, which would refuse here, is
// left out on purpose. What may run beyond it:
//
//   - a call whose lease went back after fence_timeout_ms without a word, or because its node lied (excuse);
//   - a call whose lease had gone back before its dispatch came to the node, or that came while the node registered and
//     could not name it any more: the gate's business, which the real one sees to.
func (w *world) countCalls(n *node, fresh *call) {
	if n.ended[fresh.generation] {
		w.failf("a call of lease %d begins over %s/%d, of which the node knows that it has ended", fresh.lease, n.id, fresh.generation)
	}
	busy := 0
	for _, r := range n.runs {
		if r.provider != fresh.provider || w.see.excused[r.lease] {
			continue
		}
		if r.late {
			w.tally["calls that came late"]++
			continue
		}
		busy++
	}
	most := w.see.most[fresh.lease]
	if busy > most {
		w.failf("backend of %s runs %d calls, its capacity is %d: %s", fresh.provider, busy, most, w.describe(n, fresh.provider))
	}
	if busy == most {
		w.tally["backend full"]++
	}
}

func (w *world) describe(n *node, p fsm.ProviderID) (text string) {
	for _, r := range n.runs {
		if r.provider == p {
			_, gone := n.gone[r.generation]
			text += sprint(" lease", r.lease, "generation", r.generation, "gone", gone, "held", w.see.holds(r.lease), "canceled", r.canceled, ";")
		}
	}
	return text
}

// excuse notes that a call may go on without its lease.
func (w *world) excuse(lease fsm.LeaseID, why string) {
	if !w.see.excused[lease] {
		w.see.excused[lease] = true
		w.tally["excused: "+why]++
	}
}

func (o *observer) holds(lease fsm.LeaseID) bool { return slices.Contains(o.leases, lease) }
