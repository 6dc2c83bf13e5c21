package sim

import (
	"slices"

	"iop/fsm"
)

// message is something on its way.
type message struct {
	pipe       *pipe       // those of one pipe arrive in order; nil = on its own
	repeatable bool        // may arrive twice
	loose      bool        // may be lost without anybody noticing
	lease      fsm.LeaseID // whose data connection it is on; 0 = none
	do         func()
}

// pipe is one direction of a connection.
type pipe struct{ dead bool }

func (w *world) post(m *message) { w.net = append(w.net, m) }

// at finds the message that a step means: the first of the same pipe.
func (w *world) message(n uint16) int {
	if len(w.net) == 0 {
		return -1
	}
	i := int(n) % len(w.net)
	if p := w.net[i].pipe; p != nil {
		return slices.IndexFunc(w.net, func(m *message) bool { return m.pipe == p })
	}
	return i
}

// carry delivers a message; one in a dead pipe is never seen again.
func (w *world) carry(n uint16) {
	i := w.message(n)
	if i < 0 {
		return
	}
	m := w.net[i]
	w.net = slices.Delete(w.net, i, i+1)
	if m.pipe == nil || !m.pipe.dead {
		m.do()
		w.settle()
	}
}

func (w *world) lose(n uint16) {
	if i := w.message(n); i >= 0 && w.net[i].loose {
		w.tally["messages lost"]++
		w.net = slices.Delete(w.net, i, i+1)
	}
}

func (w *world) double(n uint16) {
	if i := w.message(n); i >= 0 && w.net[i].repeatable {
		w.tally["messages doubled"]++
		w.net[i].do()
	}
}
