package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

func (a *api) leases(r *http.Request) (any, error) {
	var held []fsm.RequestView
	var now moment
	if err := a.see(r, func(m *fsm.Machine, at moment) { held, now = m.Leases(), at }); err != nil {
		return nil, err
	}
	out := adminapi.LeaseList{Leases: make([]adminapi.Lease, 0, len(held))}
	for i := range held {
		out.Leases = append(out.Leases, showLease(&held[i], now))
	}
	return out, nil
}

func (a *api) queue(r *http.Request) (any, error) {
	var waiting []fsm.RequestView
	var now moment
	if err := a.see(r, func(m *fsm.Machine, at moment) { waiting, now = m.Waiters(), at }); err != nil {
		return nil, err
	}
	out := adminapi.WaiterList{Pending: len(waiting), Waiters: make([]adminapi.Waiter, 0, len(waiting))}
	for i := range waiting {
		out.Waiters = append(out.Waiters, showWaiter(&waiting[i], now))
	}
	return out, nil
}

// lease takes a lease's id or its request's.
func (a *api) lease(r *http.Request) (any, error) {
	id := r.PathValue("id")
	v, now, found, err := a.find(r, id)
	if err != nil {
		return nil, err
	}
	if found && v.Lease != 0 {
		out := showLeaseDetail(&v, now)
		out.Story = a.story(r, v.ID, 0, v.EnqueuedIndex)
		return out, nil
	}
	number, _ := strconv.ParseUint(id, 10, 64)
	if out := a.returned(r, id, fsm.LeaseID(number)); out != nil {
		return out, nil
	}
	if !found {
		return nil, gone("lease or request", id, "/leases (iopctl leases list)")
	}
	return nil, &adminapi.Error{
		Code:    "not_found",
		Message: fmt.Sprintf("request %q has no lease: it is number %d in the queue", id, v.Position),
		Cure:    "see why it waits with 'iopctl requests explain " + id + "' or GET /requests/" + id,
		Status:  http.StatusNotFound,
	}
}

// returned tells of a lease that was returned, by its id or that of its request; nil if the history has none.
func (a *api) returned(r *http.Request, id string, number fsm.LeaseID) *adminapi.LeaseDetail {
	if number != 0 {
		if s := a.story(r, "", number, 0); s != nil && len(s.Lines) > 0 {
			return pastLease(s, number)
		}
	}
	if s := a.story(r, fsm.RequestID(id), 0, 0); s != nil && len(s.Lines) > 0 {
		if d := pastLease(s, 0); d.ID != 0 {
			return d
		}
	}
	return nil
}

func (a *api) request(r *http.Request) (any, error) {
	id := fsm.RequestID(r.PathValue("id"))
	var v fsm.RequestView
	var x fsm.Explanation
	var now moment
	var found, waits bool
	err := a.see(r, func(m *fsm.Machine, at moment) {
		v, found = m.Request(id)
		x, waits = m.Explain(id)
		now = at
	})
	if err != nil {
		return nil, err
	}
	story := a.story(r, id, 0, v.EnqueuedIndex)
	if !found {
		if story == nil || len(story.Lines) == 0 {
			return nil, gone("request", string(id), "/queue and /leases (iopctl queue list, iopctl leases list)")
		}
		return adminapi.Request{Request: string(id), State: "ended", Excluded: []string{}, Story: story}, nil
	}
	out := showRequest(&v, now)
	out.Story = story
	if waits {
		out.Explanation = showExplanation(&x)
	}
	return out, nil
}

func (a *api) find(r *http.Request, id string) (v fsm.RequestView, now moment, found bool, err error) {
	err = a.see(r, func(m *fsm.Machine, at moment) {
		now = at
		if n, err := strconv.ParseUint(id, 10, 64); err == nil {
			v, found = m.Lease(fsm.LeaseID(n))
		}
		if !found {
			v, found = m.Request(fsm.RequestID(id))
		}
	})
	return v, now, found, err
}

func gone(noun, id, where string) error {
	why := "it has ended or never was"
	if noun == "node" || noun == "provider" {
		why = "the configuration has none of that name"
	}
	return &adminapi.Error{
		Code:    "not_found",
		Message: fmt.Sprintf("no %s %q: %s", noun, id, why),
		Cure:    "those there are: GET " + where,
		Status:  http.StatusNotFound,
	}
}

func showLease(v *fsm.RequestView, now moment) adminapi.Lease {
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
		AgeMS:        now.since(v.GrantedAt),
	}
}

func showLeaseDetail(v *fsm.RequestView, now moment) adminapi.LeaseDetail {
	return adminapi.LeaseDetail{
		Lease:         showLease(v, now),
		Served:        v.Served,
		GrantedAt:     wall(v.GrantedWall),
		Enqueue:       uint64(v.Enqueue),
		EnqueuedIndex: v.EnqueuedIndex,
		EnqueuedAt:    wall(v.EnqueuedWall),
		WaitedMS:      int64((v.GrantedAt - v.EnqueuedAt) / fsm.Millisecond),
		InputTokens:   v.InputTokens,
		Excluded:      texts(v.Excluded),
	}
}

func showWaiter(v *fsm.RequestView, now moment) adminapi.Waiter {
	w := adminapi.Waiter{
		Position:      v.Position,
		Request:       string(v.ID),
		Model:         string(v.Model),
		Class:         v.Class.String(),
		Edge:          string(v.Edge),
		State:         v.State.String(),
		EnqueuedIndex: v.EnqueuedIndex,
		AgeMS:         now.since(v.EnqueuedAt),
		Candidates:    make([]adminapi.Candidate, 0, len(v.Candidates)),
	}
	if v.Deadline != 0 {
		left := max(0, -now.since(v.Deadline))
		w.DeadlineInMS = &left
	}
	for _, c := range v.Candidates {
		w.Candidates = append(w.Candidates, adminapi.Candidate{
			Provider: string(c.Provider), Dispatchable: c.Dispatchable, Reason: c.Reason,
		})
	}
	return w
}

func showRequest(v *fsm.RequestView, now moment) adminapi.Request {
	out := adminapi.Request{
		Request:     string(v.ID),
		State:       v.State.String(),
		Model:       string(v.Model),
		Class:       v.Class.String(),
		InputTokens: v.InputTokens,
		Enqueue:     uint64(v.Enqueue),
		EnqueuedAt:  wall(v.EnqueuedWall),
		Excluded:    texts(v.Excluded),
	}
	if v.Lease == 0 {
		w := showWaiter(v, now)
		out.Waiter = &w
	} else {
		l := showLeaseDetail(v, now)
		out.Lease = &l
	}
	return out
}

func texts[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, string(s))
	}
	return out
}

func wall(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
