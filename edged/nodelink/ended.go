package nodelink

import (
	"iter"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Effects takes what the machine did to links without their asking: to those of this edge, and to the others of their
// nodes; and what it has for nodes. It does not block.
func (l *Links) Effects(effects []fsm.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case fsm.EffectLinkFenced:
			l.fencedBy(e)
		case fsm.EffectDrained:
			l.drained(e)
		case fsm.EffectSessionEnded:
			for _, k := range l.links {
				l.retire(k)
			}
		}
	}
}

// fencedBy ends the link that the machine fenced, or tells its node over the one that it has here.
func (l *Links) fencedBy(e *fsm.Effect) {
	if e.Edge == l.o.Edge {
		l.fenced[e.Node] = max(l.fenced[e.Node], e.Generation)
	}
	ended := &nodepb.LinkEnded{Generation: uint64(e.Generation), Reason: e.Reason.String()}
	k := l.links[e.Node]
	switch {
	case k == nil:
	case k.generation != e.Generation:
		k.send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_LinkEnded{LinkEnded: ended}})
	case e.Reason == fsm.ReasonSessionEnded:
		l.retire(k)
	default:
		k.ended(e.Reason)
	}
}

// retire takes a link out whose session ended while the edge lives. The node registers anew; the transport stays until
// what runs over it has ended. l is locked.
func (l *Links) retire(k *link) {
	delete(l.links, k.node)
	if k.retire() {
		l.old[k] = struct{}{}
	}
	l.tell()
}

// tellFenced tells a node that has just registered of its fenced links: it may have missed that, as nobody could tell it.
// Those that are fenced from now on are told by Effects.
func (l *Links) tellFenced(k *link) {
	if l.o.Fenced == nil {
		return
	}
	for _, g := range l.o.Fenced(k.node) {
		if g != k.generation {
			k.send(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_LinkEnded{LinkEnded: &nodepb.LinkEnded{
				Generation: uint64(g), Reason: fsm.ReasonSessionEnded.String(),
			}}})
		}
	}
}

// giveUp retires a link of whose session nothing can be commanded any more.
func (l *Links) giveUp(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.links[k.node] == k {
		l.retire(k)
	}
}

// retire tells the node, and loses the link unless something runs over it.
func (k *link) retire() (stays bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_LinkEnded{LinkEnded: &nodepb.LinkEnded{
		Generation: uint64(k.generation), Reason: fsm.ReasonSessionEnded.String(),
	}}})
	if k.isLost || len(k.runs) == 0 {
		k.loseLocked(fsm.ReasonSessionEnded, false, true)
		return false
	}
	k.retired = true
	k.proposals.end(fsm.ReasonSessionEnded, false)
	return true
}

// carries tells whether the link is only kept for what runs over it. Then the end of its control stream is no loss: the node
// hangs up when all is said, while a slow client may have much of it still to come. The data connections tell themselves
// when they are dead.
func (k *link) carries() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.retired && !k.isLost && len(k.runs) > 0
}

// hangUp notes that the node ended the control stream of a link that is only kept for its runs; false: it is not.
func (k *link) hangUp() bool {
	if !k.carries() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hungUp = true
	return true
}

// Carrying is how many transports of ended sessions still carry what runs, and on how many of them the node has said all.
func (l *Links) Carrying() (links, said int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.old {
		k.mu.Lock()
		if k.hungUp {
			said++
		}
		k.mu.Unlock()
	}
	return len(l.old), said
}

// being are all links with a transport; l is locked.
func (l *Links) being() iter.Seq[*link] {
	return func(yield func(*link) bool) {
		for _, k := range l.links {
			if !yield(k) {
				return
			}
		}
		for k := range l.old {
			if !yield(k) {
				return
			}
		}
	}
}
