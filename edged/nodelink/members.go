package nodelink

import (
	"maps"
	"slices"

	"iop/proto/nodepb"
)

// MembersChanged tells all nodes anew where the edges of the cluster are.
func (l *Links) MembersChanged() {
	f := l.members()
	if f == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.links {
		k.send(f)
	}
}

// members is the frame that tells it, nil if nothing is known.
func (l *Links) members() *nodepb.EdgeFrame {
	if l.o.Members == nil {
		return nil
	}
	addresses, index := l.o.Members.Edges()
	if len(addresses) == 0 {
		return nil
	}
	update := &nodepb.MembershipUpdate{Index: index}
	for _, id := range slices.Sorted(maps.Keys(addresses)) {
		update.Edges = append(update.Edges, &nodepb.MembershipUpdate_Edge{Id: string(id), Address: addresses[id]})
	}
	return &nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_MembershipUpdate{MembershipUpdate: update}}
}
