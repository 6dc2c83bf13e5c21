package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
)

// Past tells what was: the history that the replica keeps in its own log. Its calls may take a second or two; they hold
// up nobody.
type Past interface {
	// At returns a machine of its own as it was after entry index, or, if that is 0, at a wall time.
	At(ctx context.Context, index uint64, t time.Time) (*fsm.Machine, error)
	// Story tells of a request, or if lease is not 0 of the request that had it, from index since on (0 = as far as the
	// log goes back).
	Story(ctx context.Context, request fsm.RequestID, lease fsm.LeaseID, since uint64) (*adminapi.Story, error)
}

const (
	// pastAtOnce is how many calls may look into the past at the same time: each takes memory and a core.
	pastAtOnce = 2
	// pastFor is how long one may take.
	pastFor = 4 * time.Second
	// storyFor is how long a story may take beside the live part of an answer.
	storyFor = 2 * time.Second
)

// enter takes one of the places of those who look into the past; leave gives it back.
func (a *api) enter(ctx context.Context) (leave func(), err error) {
	select {
	case a.looking <- struct{}{}:
		return func() { <-a.looking }, nil
	case <-ctx.Done():
		return nil, &adminapi.Error{
			Code: "busy", Message: "too many calls look into the past at the moment", Cure: "try again in a few seconds",
			Status: http.StatusServiceUnavailable,
		}
	}
}

// see calls fn with the machine that the call asks for: the present one, or with ?at=INDEX or ?at_time=RFC3339 one of
// the past.
func (a *api) see(r *http.Request, fn func(*fsm.Machine, moment)) error {
	q := r.URL.Query()
	if !q.Has("at") && !q.Has("at_time") {
		a.Source.View(func(m *fsm.Machine) { fn(m, momentOf(m)) })
		return nil
	}
	index, t, err := readMoment(q.Get("at"), q.Get("at_time"))
	if err != nil || a.Past == nil {
		return &adminapi.Error{
			Code: "bad_request", Message: fmt.Sprintf("at=%q at_time=%q is no moment to look back to", q.Get("at"), q.Get("at_time")),
			Cure: "give at=INDEX of the log, or at_time= as 2026-01-31T15:04:05Z", Status: http.StatusBadRequest,
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), pastFor)
	defer cancel()
	leave, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	m, err := a.Past.At(ctx, index, t)
	if err != nil {
		return &adminapi.Error{
			Code: "unreachable", Message: err.Error(), Cure: "the log keeps what edge.history allows; 'iopctl debug check --data-dir DIR' tells how far it reaches",
			Status: http.StatusNotFound,
		}
	}
	fn(m, moment(m.Now()))
	return nil
}

func readMoment(at, atTime string) (index uint64, t time.Time, err error) {
	if atTime != "" {
		t, err = time.Parse(time.RFC3339Nano, atTime)
		return 0, t, err
	}
	index, err = strconv.ParseUint(at, 10, 64)
	if err == nil && index == 0 {
		err = strconv.ErrRange
	}
	return index, t, err
}

// story tells of a request or lease; nil if that can't be told now. The answer has its live part anyway.
func (a *api) story(r *http.Request, request fsm.RequestID, lease fsm.LeaseID, since uint64) *adminapi.Story {
	if a.Past == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), storyFor)
	defer cancel()
	leave, err := a.enter(ctx)
	if err != nil {
		return nil
	}
	defer leave()
	s, err := a.Past.Story(ctx, request, lease, since)
	if err != nil {
		a.Logger.WarnContext(r.Context(), "a story can't be told", "request", request, "lease", lease, "error", err)
		return nil
	}
	return s
}

// pastLease is what is known of a lease that was returned.
func pastLease(s *adminapi.Story, id fsm.LeaseID) *adminapi.LeaseDetail {
	d := &adminapi.LeaseDetail{Excluded: []string{}, Story: s}
	d.ID, d.State = uint64(id), "returned"
	for _, l := range s.Lines {
		switch {
		case l.Lease == 0 || id != 0 && l.Lease != uint64(id):
		case l.Outcome == "granted":
			d.ID, d.Request, d.Provider, d.Node, d.Edge = l.Lease, l.Request, l.Provider, l.Node, l.Edge
			d.Session, d.Generation, d.GrantedIndex, d.GrantedAt = l.Session, l.Generation, l.Index, l.Time
		case d.Request == "":
			d.ID, d.Request, d.Provider, d.Node, d.Generation = l.Lease, l.Request, l.Provider, l.Node, l.Generation
		}
	}
	return d
}
