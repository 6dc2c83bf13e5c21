package nodelink

import (
	"iop/fsm"
	"iop/proto/nodepb"
)

// drained tells a node that an operator drains it (no provider named) or one of its providers, or that this is over. Every
// edge that the node is linked to tells it. It is for the node's log; what is granted is decided by the machine. l is locked.
func (l *Links) drained(e *fsm.Effect) {
	if k := l.links[e.Node]; k != nil && k.generation == e.Generation {
		k.send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Drain{Drain: &nodepb.Drain{Provider: string(e.Provider), On: e.On}}})
	}
}
