package sim

import (
	"cmp"
	"slices"

	"iop/edged/admission"
	"iop/fsm"
)

// session is one life of an edge as the log knows it: numbered batches, each sent until it has its outcomes. It is what
// admission proposes to.
type session struct {
	edge   *edge
	id     fsm.SessionID
	next   uint64
	queued []proposal
	flight []*sent
	ended  bool // takes nothing more
}

// proposal is a command and who hears of it.
type proposal struct {
	session *session
	cmd     fsm.Command
	to      func(fsm.Outcome, error) // nil = nobody
}

// sent is a batch without outcomes.
type sent struct {
	batch fsm.Batch
	to    []func(fsm.Outcome, error)
}

// Propose implements admission.Session. The command is copied, as its proposer may change it.
func (l *session) Propose(cmd fsm.Command, to admission.Receiver) {
	switch c := cmd.(type) {
	case *fsm.Admit:
		o := *c
		cmd = &o
	case *fsm.Cancel:
		o := *c
		cmd = &o
	case *fsm.Release:
		o := *c
		cmd = &o
	}
	f := &l.edge.w.fresh
	f.Lock()
	defer f.Unlock()
	hear := to.Receive
	if a, ok := cmd.(*fsm.Admit); ok {
		hear = l.edge.w.places.watched(a, to)
	}
	f.proposals = append(f.proposals, proposal{l, cmd, hear})
}

// sortProposals puts what goroutines proposed at the same time into an order of its own.
func sortProposals(list []proposal) {
	rank := func(p proposal) (int, string, uint64) {
		switch c := p.cmd.(type) {
		case *fsm.Release:
			return 0, "", uint64(c.Lease)
		case *fsm.Cancel:
			return 1, string(c.Request), 0
		case *fsm.Admit:
			return 2, string(c.Request), 0
		}
		return 3, "", 0
	}
	slices.SortStableFunc(list, func(a, b proposal) int {
		ka, na, ia := rank(a)
		kb, nb, ib := rank(b)
		return cmp.Or(cmp.Compare(ka, kb), cmp.Compare(na, nb), cmp.Compare(ia, ib))
	})
}

// take queues a command, or refuses it.
func (l *session) take(p proposal) {
	err := error(nil)
	switch {
	case !l.edge.up:
		return // a dead process hears nothing
	case l.ended:
		err = errEnded
	case l.edge.busy > 0 && refusable(p.cmd):
		l.edge.busy--
		l.edge.w.tally["overloaded"]++
		err = errOverloaded
	}
	if err == nil {
		l.queued = append(l.queued, p)
	} else if p.to != nil {
		p.to(fsm.Outcome{}, err)
	}
}

// refusable tells which commands storage refuses while it is behind: those that begin something.
func refusable(c fsm.Command) bool {
	switch c.(type) {
	case *fsm.Admit, *fsm.RegisterNode:
		return true
	}
	return false
}

// flush makes a batch of up to n commands: what gives back before what asks, as storage has it.
func (l *session) flush(n int) {
	n = min(n, len(l.queued))
	if n == 0 {
		return
	}
	list := slices.Clone(l.queued[:n])
	l.queued = l.queued[n:]
	slices.SortStableFunc(list, func(a, b proposal) int { return cmp.Compare(behind(a.cmd), behind(b.cmd)) })
	l.next++
	f := &sent{batch: fsm.Batch{Session: l.id, Seq: l.next, AckBelow: l.next}}
	if len(l.flight) > 0 {
		f.batch.AckBelow = l.flight[0].batch.Seq
	}
	for _, p := range list {
		f.batch.Commands = append(f.batch.Commands, p.cmd)
		f.to = append(f.to, p.to)
	}
	l.flight = append(l.flight, f)
	l.send(f)
}

func behind(c fsm.Command) int {
	switch c.(type) {
	case *fsm.Admit, *fsm.Cancel:
		return 1
	}
	return 0
}

// send hands a batch to the network, which carries it to the leader, perhaps.
func (l *session) send(f *sent) {
	w := l.edge.w
	w.post(&message{repeatable: true, loose: true, do: func() { w.log.accept(l.edge, f.batch) }})
}

// end has the session take nothing more; what is under way gets its outcomes.
func (l *session) end() {
	l.ended = true
	for _, p := range l.queued {
		if p.to != nil {
			p.to(fsm.Outcome{}, errEnded)
		}
	}
	l.queued = nil
}
