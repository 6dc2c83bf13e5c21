package storage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"iop/fsm"
)

// tracker watches one request: what commands ask of it, what becomes of it because of others, and what changes in its
// row without anybody being told.
type tracker struct {
	*teller
	m      *fsm.Machine
	ids    []fsm.RequestID // its names: a client that comes back with another takes its place over
	leases []fsm.LeaseID   // that it had
	alive  bool            // it waits or holds a lease
	row    fsm.RequestRow  // while alive: after the step before
}

func (t *tracker) id() fsm.RequestID { return t.ids[len(t.ids)-1] }

// known begins with a request that is in being where the history begins.
func (t *tracker) known(row *fsm.RequestRow, at uint64) {
	t.alive, t.row = true, *row
	if row.Lease != 0 {
		t.leases = append(t.leases, row.Lease)
	}
	l := Line{
		Index: at, Time: wallTime(t.m.Wall()), Edge: string(row.Edge), Session: uint64(row.Session), Request: string(row.ID), Lease: uint64(row.Lease),
		Provider: string(row.Provider), Node: string(row.Node), Generation: uint64(row.Generation), Outcome: row.State.String(),
		Text: fmt.Sprintf("%s when the history begins: admitted at index %d (%s), place %d", row.State, row.EnqueuedIndex, stamp(row.EnqueuedWall), row.Enqueue),
	}
	if row.Lease != 0 {
		l.Text += fmt.Sprintf(", lease %d of %s granted at index %d", row.Lease, row.Provider, row.GrantedIndex)
	}
	t.add(l)
}

func (t *tracker) see(e *fsm.Entry, s fsm.Step) error {
	b := &e.Batches[s.Batch]
	c := b.Commands[s.Command]
	before := len(t.story.Lines)
	line := Line{
		Index: e.Index, Time: wallTime(e.Wall), Command: kindOf(c), Session: uint64(b.Session), Edge: string(t.m.SessionEdge(b.Session)),
		Request: string(t.id()),
	}
	if o := t.asked(c); o {
		t.tellCommand(line, c, s)
	}
	for i := range s.Effects {
		if f := &s.Effects[i]; slices.Contains(t.ids, f.Request) {
			t.tellEffect(line, c, f)
		}
	}
	t.follow(line, c, before)
	return nil
}

// asked tells whether the command names the request or its lease.
func (t *tracker) asked(c fsm.Command) bool {
	switch c := c.(type) {
	case *fsm.Admit:
		return slices.Contains(t.ids, c.Request) || t.alive && t.row.State == fsm.StateDetached && t.takenBy(c)
	case *fsm.Cancel:
		return slices.Contains(t.ids, c.Request)
	case *fsm.Evict:
		return slices.Contains(t.ids, c.Request)
	case *fsm.Release:
		return slices.Contains(t.leases, c.Lease)
	case *fsm.LinkReport:
		return t.alive && t.row.Lease != 0 && slices.Contains(c.Running, t.row.Lease)
	case *fsm.RegisterNode:
		return t.alive && t.row.Lease != 0 && slices.Contains(c.Running, t.row.Lease)
	}
	return false
}

// takenBy tells whether an admission under another name took the waiter's place over.
func (t *tracker) takenBy(c *fsm.Admit) bool {
	row, ok := t.m.Row(c.Request)
	return ok && row.Enqueue == t.row.Enqueue
}

func (t *tracker) tellCommand(l Line, c fsm.Command, s fsm.Step) {
	o := s.Outcome
	l.Outcome = outcomeOf(o)
	if a, ok := c.(*fsm.Admit); ok && a.Request != t.id() && t.alive {
		l.Text = fmt.Sprintf("taken over by request %s with the same fingerprint: ", a.Request)
		t.ids = append(t.ids, a.Request)
		l.Request = string(a.Request)
	}
	if g := &o.Grant; g.Lease != 0 {
		l.Lease, l.Provider, l.Node, l.Generation = uint64(g.Lease), string(g.Provider), string(g.Node), uint64(g.Generation)
	} else if r, ok := c.(*fsm.Release); ok {
		l.Lease = uint64(r.Lease)
		if t.row.Lease == r.Lease {
			l.Provider, l.Node, l.Generation = string(t.row.Provider), string(t.row.Node), uint64(t.row.Generation)
		}
	}
	text := tell(c)
	if id := requestOf(c); id != "" { // whose story it is, is known
		text = strings.Replace(text, " of "+string(id), "", 1)
	}
	l.Text += text + ": " + tellOutcome(o)
	if s.Idle {
		l.Text += "; the batch changed nothing (it was answered before, or its session had ended)"
	}
	t.add(l)
}

func (t *tracker) tellEffect(l Line, cause fsm.Command, f *fsm.Effect) {
	g := &f.Grant
	l.Lease, l.Provider, l.Node, l.Generation = uint64(g.Lease), string(g.Provider), string(g.Node), uint64(g.Generation)
	switch f.Kind {
	case fsm.EffectGranted:
		l.Outcome = "granted"
		l.Text = fmt.Sprintf("lease %d of %s granted to the waiter (node %s, generation %d) after %s", g.Lease, g.Provider, g.Node, g.Generation, t.waited())
	case fsm.EffectEnded:
		l.Outcome = f.Refusal.String()
		l.Text = fmt.Sprintf("left the queue without a slot: %s, after %s", f.Refusal, t.waited())
	case fsm.EffectReturned:
		l.Outcome = "returned"
		l.Text = fmt.Sprintf("lease %d of %s returned: %s", g.Lease, g.Provider, f.Reason)
	default:
		return
	}
	l.Text += "; because of " + tell(cause)
	t.add(l)
}

func (t *tracker) waited() time.Duration {
	if !t.alive { // it came with this very command
		return 0
	}
	return time.Duration(t.m.Now() - t.row.EnqueuedAt).Round(time.Millisecond)
}

// follow compares the request with what it was before the step.
func (t *tracker) follow(l Line, c fsm.Command, linesBefore int) {
	was, wasAlive := t.row.State, t.alive
	row, ok := t.m.Row(t.id())
	t.alive = ok
	if !ok {
		return
	}
	t.row = row
	if row.Lease != 0 && !slices.Contains(t.leases, row.Lease) {
		t.leases = append(t.leases, row.Lease)
	}
	told := len(t.story.Lines) > linesBefore
	if !wasAlive && row.EnqueuedIndex < l.Index && told {
		t.story.Lines[len(t.story.Lines)-1].Text += fmt.Sprintf("; it took over the place %d of a detached waiter of index %d", row.Enqueue, row.EnqueuedIndex)
	}
	if !wasAlive || was == row.State || told {
		return
	}
	l.Outcome = row.State.String()
	l.Lease, l.Provider, l.Node, l.Generation = uint64(row.Lease), string(row.Provider), string(row.Node), uint64(row.Generation)
	switch row.State {
	case fsm.StateDetached:
		l.Text = "detached: its session ended; it keeps its place for reattach_window_ms"
	case fsm.StateFencing:
		l.Text = fmt.Sprintf("lease %d is fencing: its link is gone, and it counts until the node reports or fence_timeout_ms is over", row.Lease)
	default:
		l.Text = "is " + row.State.String() + " now"
	}
	l.Text += "; because of " + tell(c)
	t.add(l)
}

func wallTime(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

func stamp(nanos int64) string { return wallTime(nanos).Format(time.RFC3339) }
