package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"iop/edged/admission"
	"iop/fsm"
)

func sprint(args ...any) string { return strings.TrimSuffix(fmt.Sprintln(args...), "\n") }

// do carries out a step.
func (w *world) do(s step) {
	e := w.edges[int(s.a)%len(w.edges)]
	n := w.nodes[int(s.b)%len(w.nodes)]
	switch s.op {
	case opRound:
		w.round()
	case opAdmit, opRetry, opLeave:
		w.clientStep(e, s)
	case opFinish:
		n.finish(s.c, verdict{why: fsm.ReasonDone})
	case opBreak:
		n.finish(s.c, verdict{why: fsm.ReasonBackendError})
	case opNotRun:
		n.finish(s.c, verdict{why: fsm.ReasonNotRun, requeue: true})
	case opFlush:
		if e.up {
			e.flush(1 + int(s.b)%3)
		}
	case opResend:
		if e.up {
			e.resend()
		}
	case opCarry:
		w.carry(s.a)
	case opLose:
		w.lose(s.a)
	case opDouble:
		w.double(s.a)
	case opCommit:
		w.log.commit(1+int(s.a)%2, false)
	case opApply:
		e.apply(1 + int(s.b)%4)
	case opWait:
		time.Sleep([]time.Duration{1, 30, 300, 1000, 4500}[s.a%5] * time.Millisecond)
		e.impatient()
	case opWall:
		w.wall += time.Duration(int16(s.a)) * time.Minute
	case opSlow:
		w.log.speed = []int{0, 50, 200, 1}[s.a%4]
	case opLead:
		if e.up && e.majority() && w.log.leader != e.n {
			w.log.lead(e.n, true, s.b%2 == 0)
		}
	case opKillEdge:
		e.kill()
		if s.c%2 == 0 {
			w.elsewhere(e)
		}
	case opOpenEdge:
		e.open()
	case opSnapshot:
		e.snap()
	default:
		w.rareStep(e, n, s)
	}
}

func (w *world) rareStep(e *edge, n *node, s step) {
	switch s.op {
	case opEndSession:
		if x := e.session; e.up && x != nil {
			since := max(1, w.see.machine.Now()-fsm.Time(s.b%4)*fsm.Second)
			e.propose(&fsm.EndSession{Edge: e.id, Session: x.id, Reason: fsm.ReasonSessionEnded, Alive: s.c%3 > 0, Apart: s.c%2 > 0, Since: since}, nil)
			w.tally["sessions ended"]++
		}
	case opDial:
		n.dial(e)
	case opNodeLoses:
		if c := n.conns[e]; c != nil {
			n.loses(c)
		}
	case opEdgeLoses:
		if c := e.links[n.id]; c != nil && e.up {
			c.edgeLoses(fsm.ReasonHeartbeat, true)
		}
	case opDeafen:
		if c := n.conns[e]; c != nil {
			c.up.dead = c.up.dead || s.c%2 == 0
			c.down.dead = c.down.dead || s.c%2 == 1
			w.tally["links half dead"]++
		}
		if s.c%5 == 0 {
			w.heartbeats()
		}
	case opData:
		w.breakData(e, s)
	case opReport:
		n.report(s.c, 0)
	case opLie:
		n.report(s.c, 1+int(s.a)%2)
	case opKillNode:
		n.kill()
	case opOpenNode:
		n.open()
	case opTwin:
		w.twin(e, n)
	case opHealth:
		if c := n.conns[e]; c != nil && c.accepted {
			h := &fsm.SetHealth{Node: n.id, Generation: c.generation, Provider: w.plan.providers[int(s.c)%len(w.plan.providers)].ID, Cause: "sim"}
			if s.c%3 == 0 {
				h.Health = fsm.Degraded
			}
			c.toEdge(func() { e.propose(h, nil) })
		}
	case opDrain:
		if e.up {
			d := &fsm.Drain{Node: n.id, On: s.c%3 == 0}
			if s.c%2 == 0 {
				d.Provider, d.Node = w.plan.providers[int(s.b)%len(w.plan.providers)].ID, ""
			}
			e.propose(d, nil)
		}
	case opConfig:
		if e.up {
			w.plan.change(s)
			e.propose(&fsm.ApplyConfig{Document: fmt.Append(nil, w.plan.document), Config: w.plan.config(), Force: true}, nil)
		}
	case opStale:
		w.stale(e, n, s)
	case opCollide:
		if x := e.session; x != nil && e.up && w.see.batches[batchKey{x.id, x.next}].outcomes != nil {
			w.log.accept(e, fsm.Batch{Session: x.id, Seq: x.next, Commands: []fsm.Command{&fsm.Cancel{Request: "collision"}}})
		}
	case opCut:
		w.cut(e)
	case opInstall:
		w.install(e, w.edges[int(s.c)%len(w.edges)])
	case opLag:
		e.lag = 1 + int(s.c)%5
	case opStrand:
		w.strand(e, n)
	case opUpgrade:
		w.upgrade(e, s)
	case opBusy:
		e.busy = int(s.c) % 4
	}
}

func (w *world) clientStep(e *edge, s step) {
	switch s.op {
	case opAdmit:
		w.names++
		r := admission.Request{
			ID: fsm.RequestID(fmt.Sprint("r", w.names)), Model: w.plan.models[int(s.b)%len(w.plan.models)].ID, Needs: fsm.NeedChat,
			InputTokens: int64(s.c%5) * 300, Class: fsm.Class(s.c / 5 % 4 / 3),
		}
		if s.c/20%2 == 0 {
			r.Fingerprint = fsm.Fingerprint{1 + byte(s.c/40%3)}
		}
		r.Principal, r.Token, r.Metered = []fsm.PrincipalID{"", "ann", "ann", "bob"}[s.c/3%4], "t", s.c/7%4 > 0
		if s.c/120%5 == 0 {
			r.MaxWait = 700 * fsm.Millisecond
		}
		e.come(r)
	case opRetry:
		if c, ok := pick(w.clients, s.b); ok && c.over() && !c.retried && c.fate() != "served" && !c.left {
			c.retried = true
			r := c.ask
			if s.c%3 == 0 && r.Fingerprint != (fsm.Fingerprint{}) { // without an Idempotency-Key
				w.names++
				r.ID = fsm.RequestID(fmt.Sprint("r", w.names))
			}
			e.come(r)
		}
	case opLeave:
		if c, ok := pick(w.clients, s.b); ok {
			c.leave()
		}
	}
}

// elsewhere has the clients of a dead edge come again at another at once, without a key.
func (w *world) elsewhere(dead *edge) {
	other := w.edges[(dead.n+1)%len(w.edges)]
	for _, c := range slices.Clone(w.clients) {
		if c.edge == dead && c.crashed && !c.retried && !c.left && c.ask.Fingerprint != (fsm.Fingerprint{}) {
			c.retried = true
			w.names++
			r := c.ask
			r.ID = fsm.RequestID(fmt.Sprint("r", w.names))
			other.come(r)
		}
	}
}

// breakData loses the data connection of an exchange with what is on it; the edge then asks the node over the link.
func (w *world) breakData(e *edge, s step) {
	x, ok := pick(e.exchanges(), s.b)
	if !ok {
		return
	}
	keep := w.net[:0]
	for _, m := range w.net {
		if m.lease != x.grant.Lease {
			keep = append(keep, m)
		}
	}
	w.net = keep
	w.tally["data connections broken"]++
	e.stop(x)
}

// strand leaves a node with the link to one edge, ends that edge's session though it lives, and has the node register with
// the others before it can know: the machine has taken back what runs.
func (w *world) strand(e *edge, n *node) {
	x := e.session
	if !e.up || x == nil || len(w.edges) < 2 {
		return
	}
	for _, o := range w.edges {
		if o == e || !o.up {
			continue
		}
		if c := n.conns[o]; c != nil {
			n.loses(c)
		}
		if c := o.links[n.id]; c != nil {
			c.edgeLoses(fsm.ReasonHeartbeat, true)
		}
		w.settle()
		o.flush(9)
	}
	for range len(w.net) {
		w.carry(0)
	}
	for range 6 {
		w.log.commit(4, false)
	}
	w.log.accept(e, fsm.Batch{Commands: []fsm.Command{&fsm.EndSession{Edge: e.id, Session: x.id, Reason: fsm.ReasonSessionEnded}}})
	for range 6 {
		w.log.commit(4, false)
	}
	for _, o := range w.edges {
		if o != e {
			n.dial(o)
		}
	}
	w.tally["nodes stranded"]++
}

// twin is another process that uses the node's name; the one before it dies.
func (w *world) twin(e *edge, n *node) {
	for _, t := range w.twins {
		t.kill()
	}
	w.nonce++
	t := &node{w: w, id: n.id, up: true, instance: w.nonce, conns: map[*edge]*conn{}, gone: map[fsm.Generation]int{}, ended: map[fsm.Generation]bool{}, past: map[fsm.LeaseID]verdict{}}
	w.twins = append(w.twins[:0], t)
	t.dial(e)
	w.tally["twins"]++
}

// stale says something about an old life.
func (w *world) stale(e *edge, n *node, s step) {
	if !e.up {
		return
	}
	row := nodeOf(w.see.image, n.id)
	if row == nil || row.Generation == 0 {
		return
	}
	g := row.Generation - fsm.Generation(int(s.c/8)%3)
	if linkOf(w.see.image, n.id, g) != nil || g == 0 {
		return
	}
	switch s.c % 5 {
	case 0:
		e.propose(&fsm.LinkLost{Node: n.id, Generation: g, Reason: fsm.ReasonHeartbeat}, nil)
	case 1:
		e.propose(&fsm.NodeReady{Node: n.id, Generation: g}, nil)
	case 2:
		e.propose(&fsm.LinkReport{Node: n.id, Generation: g}, nil)
	case 3:
		e.propose(&fsm.SetHealth{Node: n.id, Generation: g, Provider: w.plan.providers[int(s.a)%len(w.plan.providers)].ID, Health: fsm.Degraded}, nil)
	case 4:
		lease := 1 + fsm.LeaseID(s.a)%w.see.image.NextLease
		if w.see.returned[lease] {
			e.propose(&fsm.Release{Lease: lease, Reason: fsm.ReasonDone, Requeue: s.b%2 == 0}, nil)
		}
	}
	w.log.commit(1, s.b%4 == 0)
}
