package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

func (a *api) leases(*http.Request) (any, error) {
	var held []fsm.RequestView
	var now moment
	a.Source.View(func(m *fsm.Machine) { held, now = m.Leases(), momentOf(m) })
	out := adminapi.LeaseList{Leases: make([]adminapi.Lease, 0, len(held))}
	for i := range held {
		out.Leases = append(out.Leases, showLease(&held[i], now))
	}
	return out, nil
}

func (a *api) queue(*http.Request) (any, error) {
	var waiting []fsm.RequestView
	var now moment
	a.Source.View(func(m *fsm.Machine) { waiting, now = m.Waiters(), momentOf(m) })
	out := adminapi.WaiterList{Pending: len(waiting), Waiters: make([]adminapi.Waiter, 0, len(waiting))}
	for i := range waiting {
		out.Waiters = append(out.Waiters, showWaiter(&waiting[i], now))
	}
	return out, nil
}

// lease takes a lease's id or its request's.
func (a *api) lease(r *http.Request) (any, error) {
	id := r.PathValue("id")
	v, now, found := a.find(id)
	switch {
	case !found:
		return nil, gone("lease or request", id, "/leases (iopctl leases list)")
	case v.Lease == 0:
		return nil, &adminapi.Error{
			Code:    "not_found",
			Message: fmt.Sprintf("request %q has no lease: it is number %d in the queue", id, v.Position),
			Cure:    "see why it waits with GET /requests/" + id + " or GET /queue (iopctl queue list)",
			Status:  http.StatusNotFound,
		}
	}
	return showLeaseDetail(&v, now), nil
}

func (a *api) request(r *http.Request) (any, error) {
	id := r.PathValue("id")
	var v fsm.RequestView
	var now moment
	var found bool
	a.Source.View(func(m *fsm.Machine) {
		v, found = m.Request(fsm.RequestID(id))
		now = momentOf(m)
	})
	if !found {
		return nil, gone("request", id, "/queue and /leases (iopctl queue list, iopctl leases list)")
	}
	return showRequest(&v, now), nil
}

func (a *api) find(id string) (v fsm.RequestView, now moment, found bool) {
	a.Source.View(func(m *fsm.Machine) {
		now = momentOf(m)
		if n, err := strconv.ParseUint(id, 10, 64); err == nil {
			v, found = m.Lease(fsm.LeaseID(n))
		}
		if !found {
			v, found = m.Request(fsm.RequestID(id))
		}
	})
	return v, now, found
}

func gone(noun, id, where string) error {
	return &adminapi.Error{
		Code:    "not_found",
		Message: fmt.Sprintf("no %s %q: it has ended or never was", noun, id),
		Cure:    "those in being are at GET " + where,
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
