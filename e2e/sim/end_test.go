package sim

import (
	"fmt"
	"strings"
	"time"

	"iop/fsm"
)

// ending bounds how long everything may take to come to its end when the faults have stopped.
const ending = 600

// end stops the faults and leads everything to its end: all requests have ended, all leases are back, all replicas agree.
func (w *world) end() {
	w.log.speed = 0
	for _, e := range w.edges {
		e.cut = false
		e.open()
		e.busy = 0
	}
	if w.log.leader < 0 {
		w.log.lead(0, false, false)
	}
	for _, t := range w.twins {
		t.kill()
	}
	left := ""
	for i := range ending {
		w.quietRound(i)
		if left = w.left(); left == "" && i > 30 {
			w.last()
			return
		}
	}
	w.failf("it does not come to its end: %s", left)
}

// heal brings everything into service; what steps proposed before may still come behind it, so it is done again.
func (w *world) heal() {
	w.plan.whole()
	w.edges[0].propose(&fsm.ApplyConfig{Document: fmt.Append(nil, w.plan.document), Config: w.plan.config(), Force: true}, nil)
	for _, n := range w.nodes {
		n.open()
		w.edges[0].propose(&fsm.Drain{Node: n.id}, nil)
	}
	for _, p := range w.plan.providers {
		w.edges[0].propose(&fsm.Drain{Provider: p.ID}, nil)
	}
}

// quietRound has everybody do what is to be done.
func (w *world) quietRound(i int) {
	if i%10 == 0 && i < 30 {
		w.heal()
	}
	w.heartbeats()
	for _, n := range w.nodes {
		for _, e := range w.edges {
			n.dial(e)
		}
		n.report(uint16(i), 0)
		for len(n.runs) > 0 {
			n.finish(0, verdict{why: fsm.ReasonDone})
		}
		for _, c := range n.links() {
			for _, p := range w.plan.providers {
				if c.ready && p.Node == n.id && i%20 == 0 {
					c.edge.propose(&fsm.SetHealth{Node: n.id, Generation: c.generation, Provider: p.ID}, nil)
				}
			}
		}
	}
	for _, e := range w.edges {
		e.impatient()
		if i%5 == 4 {
			e.resend()
		}
	}
	w.round()
	for len(w.log.inbox) > 0 {
		w.log.commit(2, false)
	}
	w.round()
	time.Sleep(100 * time.Millisecond)
}

// left tells what has not ended.
func (w *world) left() string {
	var list []string
	for _, c := range w.clients {
		if !c.over() {
			list = append(list, fmt.Sprintf("client of %s at %s", c.ask.ID, c.edge.id))
		}
	}
	for _, e := range w.edges {
		if n := e.adm.Open(); n > 0 {
			list = append(list, fmt.Sprintf("%d requests open at %s", n, e.id))
		}
		for _, l := range e.lanes {
			if len(l.flight)+len(l.queued) > 0 {
				list = append(list, fmt.Sprintf("%d batches without outcome at %s", len(l.flight), e.id))
			}
		}
		if e.session == nil {
			list = append(list, fmt.Sprintf("%s has no session", e.id))
		}
	}
	for i := range w.see.image.Requests {
		r := &w.see.image.Requests[i]
		list = append(list, fmt.Sprintf("request %s is %s, lease %d", r.ID, r.State, r.Lease))
	}
	for _, n := range w.nodes {
		for _, e := range w.edges {
			if c := n.conns[e]; c == nil || !c.ready {
				list = append(list, fmt.Sprintf("%s has no link to %s (dialled %t)", n.id, e.id, c != nil))
			}
		}
	}
	return strings.Join(list, ", ")
}

// last looks at the sums.
func (w *world) last() {
	img := w.see.image
	if img.Granted != img.Returned || int(img.Granted) != len(w.see.granted) || len(w.see.granted) != len(w.see.returned) {
		w.failf("granted %d, returned %d; seen: %d, %d", img.Granted, img.Returned, len(w.see.granted), len(w.see.returned))
	}
	for _, e := range w.edges {
		e.apply(1 << 30)
		if e.machine.Digest() != w.see.machine.Digest() {
			w.failf("I9: %s differs at the end", e.id)
		}
		if len(e.runs) > 0 {
			w.failf("%s still knows %d exchanges", e.id, len(e.runs))
		}
	}
	for _, c := range w.clients {
		w.tally["client "+c.fate()]++
	}
	w.replay()
}

// replay feeds the whole log to a new machine: I9.
func (w *world) replay() {
	m := fsm.New()
	for i := range w.log.records {
		m.Apply(w.log.decode(&w.log.records[i]))
	}
	if m.Digest() != w.see.machine.Digest() {
		w.failf("I9: the replayed log gives another state")
	}
}
