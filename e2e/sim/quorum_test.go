package sim

import (
	"time"

	"iop/fsm"
)

// sessionTTL is for how long the leader may not have heard of an edge before it ends its session.
const sessionTTL = 3 * time.Second

// cut parts an edge from the other replicas, or joins it again; its nodes and clients reach it all the same.
func (w *world) cut(e *edge) {
	if !w.plan.quorum {
		return
	}
	e.cut = !e.cut
	w.tally["partitions"]++
}

// reaches tells whether two edges can talk.
func (e *edge) reaches(o *edge) bool { return e == o || e.cut == o.cut }

// majority tells whether an edge is with more than half of the cluster. Without a quorum rule it always is.
func (e *edge) majority() bool {
	if !e.w.plan.quorum {
		return true
	}
	n := 0
	for _, o := range e.w.edges {
		if o.up && e.reaches(o) {
			n++
		}
	}
	return 2*n > len(e.w.edges)
}

// leads tells whether there is a leader that can commit.
func (l *log) leads() bool { return l.leader >= 0 && l.w.edges[l.leader].majority() }

// elect makes an edge of the majority the leader, if the one there is can't commit for long.
func (l *log) elect() {
	if l.leads() {
		l.lost = time.Time{}
		return
	}
	if l.lost.IsZero() {
		l.lost = time.Now()
	}
	if time.Since(l.lost) < 500*time.Millisecond {
		return
	}
	for _, e := range l.w.edges {
		if e.up && e.majority() {
			l.w.tally["elections"]++
			l.lead(e.n, true, l.term%2 == 0)
			return
		}
	}
}

// reap ends the sessions of edges that the leader has not heard of for long. It can't know whether they live.
func (l *log) reap() (list []fsm.Batch) {
	if !l.w.plan.quorum {
		return nil
	}
	for _, e := range l.w.edges {
		if e.up && e.reaches(l.w.edges[l.leader]) {
			e.heard, e.since = time.Now(), max(1, l.w.see.machine.Now())
			continue
		}
		id, ok := l.w.see.machine.CurrentSession(e.id)
		if !ok || time.Since(e.heard) < sessionTTL {
			continue
		}
		l.w.tally["sessions of lost edges ended"]++
		list = append(list, fsm.Batch{Commands: []fsm.Command{
			&fsm.EndSession{Edge: e.id, Session: id, Reason: fsm.ReasonSessionEnded, Alive: true, Apart: e.n%3 > 0, Since: e.since},
		}})
	}
	return list
}

// install has an edge lose its disk and begin with the snapshot of another, as a new member does.
func (w *world) install(e, from *edge) {
	if e == from || from.snapshot == nil {
		return
	}
	e.kill()
	e.snapshot, e.snapAt = from.snapshot, from.snapAt
	w.tally["snapshots installed"]++
	e.open()
}

// upgrade proposes what belongs to no request: a level, an address, a comparison of the replicas.
func (w *world) upgrade(e *edge, s step) {
	if !e.up {
		return
	}
	switch s.c % 3 {
	case 0:
		e.propose(&fsm.RaiseLevel{Level: uint32(s.b % (fsm.LevelMax + 1))}, nil)
	case 1:
		e.propose(&fsm.Announce{Address: []string{"", "here:1", "there:2"}[s.b%3]}, nil)
	case 2:
		if r, ok := pick(w.log.records, s.b); ok {
			e.propose(&fsm.DigestCheck{Index: r.index, Digest: r.digest}, nil)
		}
	}
}

// checks compares what digest checks say with what this replica had: I9.
func (e *edge) checks(list []fsm.DigestCheck) {
	for _, c := range list {
		e.w.tally["digest checks"]++
		if mine, ok := e.digests[c.Index]; ok && mine != c.Digest {
			e.w.failf("I9: %s differs from the leader at index %d", e.id, c.Index)
		}
	}
}

// raised: the level never falls; a check that was taken is there for the replica, and changes nothing but that it was taken.
func (o *observer) raised(before *fsm.Image, res *fsm.Result, commands int) {
	if o.image.Level < before.Level {
		o.w.failf("the level fell from %d to %d", before.Level, o.image.Level)
	}
	c, ok := o.only.(*fsm.DigestCheck)
	if !ok || commands != 1 {
		return
	}
	was := *before
	was.Checked = o.image.Checked
	if !same(&was, o.image) {
		o.w.failf("the check of index %d changed something", c.Index)
	}
	if before.Checked != o.image.Checked && len(res.Checks) != 1 {
		o.w.failf("the check of index %d is not told", c.Index)
	}
}
