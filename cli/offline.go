package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// offlineOptions choose a stopped replica's files instead of an edge.
type offlineOptions struct {
	dataDir string
}

func (o *offlineOptions) register(c *cobra.Command) {
	c.Flags().StringVar(&o.dataDir, "data-dir", "", "read the data `directory` of a stopped or crashed replica instead; it is not changed")
	// The name is that of the flag just made.
	_ = c.MarkFlagDirname("data-dir")
}

// leases are those at the moment. Ages are those at the last entry before it, when time stood still for it.
func (x *offline) leases() (*adminapi.LeaseList, error) {
	held := x.machine.Leases()
	out := &adminapi.LeaseList{Leases: make([]adminapi.Lease, 0, len(held))}
	for i := range held {
		out.Leases = append(out.Leases, leaseOf(&held[i], x.machine.Now()))
	}
	return out, nil
}

func (x *offline) queue() (*adminapi.WaiterList, error) {
	waiting := x.machine.Waiters()
	out := &adminapi.WaiterList{Pending: len(waiting), Waiters: make([]adminapi.Waiter, 0, len(waiting))}
	for i := range waiting {
		out.Waiters = append(out.Waiters, waiterOf(&waiting[i], x.machine.Now()))
	}
	return out, nil
}

// lease takes a lease's id or its request's.
func (x *offline) lease(id string) (*adminapi.LeaseDetail, error) {
	n, _ := strconv.ParseUint(id, 10, 64)
	v, found := x.machine.Lease(fsm.LeaseID(n))
	if !found {
		v, found = x.machine.Request(fsm.RequestID(id))
	}
	if found && v.Lease != 0 {
		d := leaseDetailOf(&v, x.machine.Now())
		var err error
		d.Story, err = x.story(storage.Subject{Request: v.ID})
		return d, err
	}
	for _, s := range []storage.Subject{{Lease: fsm.LeaseID(n)}, {Request: fsm.RequestID(id)}} {
		if s.Lease == 0 && s.Request == "" {
			continue
		}
		story, err := x.story(s)
		if err != nil {
			return nil, err
		}
		if d := returnedLease(story, s.Lease); d != nil {
			return d, nil
		}
	}
	return nil, &faultError{
		code: ExitFailure,
		err:  fmt.Errorf("no lease or request %q holds a slot at index %d of %s, nor did it as far as its log goes back", id, x.machine.Index(), x.dir),
		cure: "'iopctl leases list --data-dir " + x.dir + "' lists those that do; 'iopctl requests explain' tells of those that wait",
	}
}

// returnedLease is what is known of a lease that was returned; nil if the story has none.
func returnedLease(s *adminapi.Story, id fsm.LeaseID) *adminapi.LeaseDetail {
	if s == nil {
		return nil
	}
	d := &adminapi.LeaseDetail{Excluded: []string{}, Story: s}
	for _, l := range s.Lines {
		switch {
		case l.Lease == 0 || id != 0 && l.Lease != uint64(id):
		case l.Outcome == "granted":
			d.Lease = adminapi.Lease{
				ID: l.Lease, Request: l.Request, Provider: l.Provider, Node: l.Node, Edge: l.Edge, Session: l.Session,
				Generation: l.Generation, GrantedIndex: l.Index, State: "returned",
			}
			d.GrantedAt = l.Time
		case d.Request == "":
			d.Lease = adminapi.Lease{
				ID: l.Lease, Request: l.Request, Provider: l.Provider, Node: l.Node, Generation: l.Generation, State: "returned",
			}
		}
	}
	if d.ID == 0 {
		return nil
	}
	return d
}

// request tells where a request is, or where it went.
func (x *offline) request(id string) (*adminapi.Request, error) {
	story, err := x.story(storage.Subject{Request: fsm.RequestID(id)})
	if err != nil {
		return nil, err
	}
	v, found := x.machine.Request(fsm.RequestID(id))
	if !found {
		if story == nil || len(story.Lines) == 0 {
			return nil, &faultError{
				code: ExitFailure, err: fmt.Errorf("the log in %s knows no request %q", x.dir, id),
				cure: "'iopctl queue list' and 'iopctl leases list' with --data-dir " + x.dir + " list those in being",
			}
		}
		return &adminapi.Request{Request: id, State: "ended", Excluded: []string{}, Story: story}, nil
	}
	return requestOf(x.machine, &v, story), nil
}

func requestOf(m *fsm.Machine, v *fsm.RequestView, story *adminapi.Story) *adminapi.Request {
	d := leaseDetailOf(v, m.Now())
	out := &adminapi.Request{
		Request: string(v.ID), State: v.State.String(), Model: string(v.Model), Class: v.Class.String(), InputTokens: v.InputTokens,
		Enqueue: uint64(v.Enqueue), EnqueuedAt: d.EnqueuedAt, Excluded: d.Excluded, Story: story,
	}
	if v.Lease != 0 {
		out.Lease = d
		return out
	}
	w := waiterOf(v, m.Now())
	out.Waiter = &w
	if e, ok := m.Explain(v.ID); ok {
		out.Explanation = explanationOf(&e)
	}
	return out
}

func explanationOf(x *fsm.Explanation) *adminapi.Explanation {
	out := &adminapi.Explanation{
		AheadCount: x.AheadCount, Ahead: make([]adminapi.Ahead, 0, len(x.Ahead)),
		Candidates: make([]adminapi.ExplainedCandidate, 0, len(x.States)),
	}
	for _, o := range x.Ahead {
		out.Ahead = append(out.Ahead, adminapi.Ahead{
			Position: o.Position, Request: string(o.Request), Model: string(o.Model), Class: o.Class.String(),
		})
	}
	for i := range x.States {
		s := &x.States[i]
		c := adminapi.ExplainedCandidate{
			Candidate: adminapi.Candidate{Provider: string(s.Provider), Dispatchable: s.Dispatchable, Reason: s.Reason},
			Node:      string(s.Node), Capacity: s.Capacity, InFlight: s.InFlight, Holders: make([]uint64, 0, len(s.Holders)),
			Needed: adminapi.Needed(s.Reason, string(s.Provider), string(s.Node), s.Cause),
		}
		for _, id := range s.Holders {
			c.Holders = append(c.Holders, uint64(id))
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}

func waiterOf(v *fsm.RequestView, now fsm.Time) adminapi.Waiter {
	w := adminapi.Waiter{
		Position: v.Position, Request: string(v.ID), Model: string(v.Model), Class: v.Class.String(), Edge: string(v.Edge),
		State: v.State.String(), EnqueuedIndex: v.EnqueuedIndex, AgeMS: int64((now - v.EnqueuedAt) / fsm.Millisecond),
		Candidates: make([]adminapi.Candidate, 0, len(v.Candidates)),
	}
	if v.Deadline != 0 {
		left := max(0, int64((v.Deadline-now)/fsm.Millisecond))
		w.DeadlineInMS = &left
	}
	for _, c := range v.Candidates {
		w.Candidates = append(w.Candidates, adminapi.Candidate{Provider: string(c.Provider), Dispatchable: c.Dispatchable, Reason: c.Reason})
	}
	return w
}

func leaseOf(v *fsm.RequestView, now fsm.Time) adminapi.Lease {
	return adminapi.Lease{
		ID:           uint64(v.Lease),
		Request:      string(v.ID),
		Model:        string(v.Model),
		Provider:     string(v.Provider),
		Node:         string(v.Node),
		Class:        v.Class.String(),
		State:        v.State.String(),
		Edge:         string(v.Edge),
		Session:      uint64(v.Session),
		Generation:   uint64(v.Generation),
		GrantedIndex: v.GrantedIndex,
		AgeMS:        int64((now - v.GrantedAt) / fsm.Millisecond),
	}
}

func leaseDetailOf(v *fsm.RequestView, now fsm.Time) *adminapi.LeaseDetail {
	excluded := make([]string, 0, len(v.Excluded))
	for _, p := range v.Excluded {
		excluded = append(excluded, string(p))
	}
	return &adminapi.LeaseDetail{
		Lease:         leaseOf(v, now),
		Served:        v.Served,
		GrantedAt:     time.Unix(0, v.GrantedWall).UTC(),
		Enqueue:       uint64(v.Enqueue),
		EnqueuedIndex: v.EnqueuedIndex,
		EnqueuedAt:    time.Unix(0, v.EnqueuedWall).UTC(),
		WaitedMS:      int64((v.GrantedAt - v.EnqueuedAt) / fsm.Millisecond),
		InputTokens:   v.InputTokens,
		Excluded:      excluded,
	}
}
