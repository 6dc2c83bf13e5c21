package edged

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"iop/edged/admission"
	"iop/edged/metrics"
	"iop/edged/openai"
	"iop/edged/openai/respond"
	"iop/fsm"
	"iop/storage"
)

// responses is openai's Store, kept by the log: what is stored here is stored on every replica, and outlives all of them
// being killed at once. Background responses belong to the cluster: the machine grants each to the edge whose link is used,
// which runs it (background.go).
//
// A stored foreground response is proposed, and the client's answer does not wait for that: this edge knows it at once, the
// others a moment later. If the edge is killed in this moment, it is not stored.
type responses struct {
	store   *storage.Store
	tenure  *tenure
	log     *slog.Logger
	metrics *metrics.Metrics

	mu      sync.Mutex // guards the rest
	server  *openai.Server
	runs    map[fsm.ResponseID]*run
	keeping map[string]*keeping // proposed, without an outcome yet
	kept    int64               // bytes of those
	over    bool                // nothing is begun any more
	working sync.WaitGroup
}

// keeping is a response that is being stored.
type keeping struct {
	r    *openai.Stored
	over chan struct{} // closed when it is, or can't be
}

// Bounds of stored responses.
const (
	// recordMax is the largest request, and keepMax the largest answer, that is stored.
	recordMax = 4 << 20
	keepMax   = 6 << 20
	// keepingMax bounds the answers that wait for the log.
	keepingMax = 64 << 20
	// keepTime bounds how long one waits.
	keepTime = 30 * time.Second
	// lookAgain bounds how long a replica that does not know a response asks the leader whether it is behind.
	lookAgain = 2 * time.Second
)

func newResponses(store *storage.Store, t *tenure, log *slog.Logger, m *metrics.Metrics) *responses {
	return &responses{store: store, tenure: t, log: log, metrics: m, runs: map[fsm.ResponseID]*run{}, keeping: map[string]*keeping{}}
}

// serve tells who runs background responses.
func (s *responses) serve(server *openai.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

// Owns implements openai.Owner.
func (s *responses) Owns() bool { return true }

// givenUp says why the machine ended a response.
func givenUp(why fsm.Refusal) string {
	switch why {
	case fsm.RefusalExpired:
		return "The response did not come to its end in time."
	case fsm.RefusalLost:
		return "The run was lost too often: the provider, its node or the gateway ended in the middle of it each time."
	case fsm.RefusalEvicted:
		return "An operator took the request out of the queue."
	case fsm.RefusalModelNotFound:
		return "The model does not exist any more."
	case fsm.RefusalContextTooLong:
		return "The input is too long for every provider of the model."
	case fsm.RefusalUnsupported:
		return "No provider of the model can serve this kind of request any more."
	}
	return "The gateway gave the response up (" + why.String() + ")."
}

// refusedResponse is what a refusal of the machine means for openai.
func refusedResponse(why fsm.Refusal) error {
	return &admission.Refused{Why: why}
}

// trouble is an error of the store in admission's words, which have codes.
func trouble(err error) error {
	if errors.Is(err, storage.ErrTooLarge) {
		return openai.ErrTooLong
	}
	if errors.Is(err, storage.ErrLevel) {
		return olderReplica{err}
	}
	if errors.Is(err, errNoSession) {
		return fmt.Errorf("%w: %w", admission.ErrNoLeader, err)
	}
	return translate(err)
}

// olderReplica says that a replica of an older version could not read what is to be stored.
type olderReplica struct{ error }

// Code is the name that openai knows it by.
func (olderReplica) Code() string { return "feature_level" }

func (e olderReplica) Unwrap() error { return e.error }

// Submit stores a background response; it is on the disks of a majority when Submit returns.
func (s *responses) Submit(ctx context.Context, r *openai.Stored) (before *openai.Stored, err error) {
	rec, err := encodeRecord(r)
	if err != nil {
		return nil, err
	}
	if len(rec)+len(r.Object) > recordMax {
		return nil, openai.ErrTooLong
	}
	q := &r.Ask
	cmd := &fsm.Submit{
		Response: fsm.ResponseID(r.ID),
		Request: fsm.Admit{
			Model: q.Model, Class: q.Class, InputTokens: q.InputTokens, Needs: q.Needs, Provider: q.Provider,
			Principal: fsm.PrincipalID(r.Principal), Token: r.Token, Metered: q.Metered,
		},
		Payload: fsm.Payload{Record: rec, Object: r.Object, Events: encodeEvents(nil, r.Events), Count: int64(len(r.Events))},
	}
	o, err := s.tenure.Do(ctx, cmd)
	switch {
	case err != nil:
		return nil, trouble(err)
	case o.Code == fsm.Queued:
		return nil, nil
	case o.Code != fsm.Refused:
		return nil, fmt.Errorf("submit response %s: %s", r.ID, o.Code)
	case o.Refusal != fsm.RefusalConflict:
		return nil, refusedResponse(o.Refusal)
	}
	before, err = s.Get(ctx, r.Principal, r.ID)
	if errors.Is(err, openai.ErrNoResponse) { // it was forgotten, and its run is not over yet
		return nil, refusedResponse(fsm.RefusalInProgressElsewhere)
	}
	return before, err
}

// Keep stores a response that has ended, behind the back of whoever calls.
func (s *responses) Keep(_ context.Context, r *openai.Stored) error {
	rec, err := encodeRecord(r)
	if err != nil {
		return err
	}
	size := int64(len(rec) + len(r.Object))
	if size > keepMax {
		return openai.ErrTooLong
	}
	status, ok := statusOf(r.Status)
	if !ok {
		return fmt.Errorf("keep response %s: status %q", r.ID, r.Status)
	}
	key := r.Principal + "\x00" + r.ID
	s.mu.Lock()
	if s.over || s.kept+size > keepingMax {
		s.mu.Unlock()
		return openai.ErrStoreFull
	}
	k := &keeping{r: r, over: make(chan struct{})}
	s.keeping[key] = k
	s.kept += size
	s.working.Add(1)
	s.mu.Unlock()
	cmd := &fsm.Keep{
		Response: fsm.ResponseID(r.ID), Principal: fsm.PrincipalID(r.Principal), Status: status,
		Payload: fsm.Payload{Record: rec, Object: r.Object},
	}
	go func() {
		defer s.working.Done()
		ctx, cancel := context.WithTimeout(context.Background(), keepTime)
		defer cancel()
		o, err := s.tenure.Do(ctx, cmd)
		if err != nil || o.Code != fsm.Done {
			s.log.Warn("response not stored", "request", r.Asked, "response", r.ID, "outcome", o.Code.String(), "refusal", o.Refusal.String(), "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.keeping, key)
		close(k.over)
		s.kept -= size
	}()
	return nil
}

// Get returns a response. A replica that does not know it asks whether it is behind.
func (s *responses) Get(ctx context.Context, principal, id string) (*openai.Stored, error) {
	s.mu.Lock()
	k := s.keeping[principal+"\x00"+id]
	s.mu.Unlock()
	if k != nil {
		return k.r, nil
	}
	got, err := s.store.Response(fsm.ResponseID(id))
	if errors.Is(err, storage.ErrNoResponse) && s.catchUp(ctx) {
		got, err = s.store.Response(fsm.ResponseID(id))
	}
	switch {
	case errors.Is(err, storage.ErrNoResponse), err == nil && string(got.Principal) != principal:
		return nil, openai.ErrNoResponse
	case err != nil:
		s.log.Error("stored response can't be read", "response", id, "error", err)
		return nil, err
	}
	return decodeRecord(got)
}

// catchUp waits until this replica knows all that was confirmed anywhere before; false: it led, so it did, or it can't
// find out.
func (s *responses) catchUp(ctx context.Context) bool {
	if s.store.Role() == storage.RoleLeader {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	_, err := s.store.Barrier(ctx)
	return err == nil
}

// mine tells whether the principal has a response, and what the machine knows of it.
func (s *responses) mine(ctx context.Context, principal, id string) (fsm.ResponseRow, error) {
	row, _, err := s.store.ResponseRow(fsm.ResponseID(id))
	if err != nil && s.catchUp(ctx) {
		row, _, err = s.store.ResponseRow(fsm.ResponseID(id))
	}
	if err != nil || string(row.Principal) != principal {
		return row, openai.ErrNoResponse
	}
	return row, nil
}

// awaitKept waits until a response that is just being stored is: who has its answer may delete it at once.
func (s *responses) awaitKept(ctx context.Context, principal, id string) error {
	s.mu.Lock()
	k := s.keeping[principal+"\x00"+id]
	s.mu.Unlock()
	if k == nil {
		return nil
	}
	select {
	case <-k.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Delete forgets a response. What it said stays in the log and in older snapshots until these are let go.
func (s *responses) Delete(ctx context.Context, principal, id string) error {
	if err := s.awaitKept(ctx, principal, id); err != nil {
		return err
	}
	if _, err := s.mine(ctx, principal, id); err != nil {
		return err
	}
	o, err := s.tenure.Do(ctx, &fsm.Forget{Response: fsm.ResponseID(id)})
	switch {
	case err != nil:
		return trouble(err)
	case o.Code != fsm.Done:
		return openai.ErrNoResponse
	}
	return nil
}

// Progress adds to a response that runs here. Cancelled is a client's word, from any replica.
func (s *responses) Progress(ctx context.Context, principal, id string, p openai.Progress) error {
	if p.Status == respond.Cancelled {
		if _, err := s.mine(ctx, principal, id); err != nil {
			return err
		}
		return s.put(ctx, &fsm.Progress{Response: fsm.ResponseID(id), Status: fsm.ResponseCancelled, Payload: fsm.Payload{
			Object: p.Object, Events: encodeEvents(nil, p.Events), Count: int64(len(p.Events)),
		}})
	}
	s.mu.Lock()
	r := s.runs[fsm.ResponseID(id)]
	s.mu.Unlock()
	if r == nil {
		return openai.ErrEnded
	}
	return r.add(ctx, p)
}

// put proposes word on a response.
func (s *responses) put(ctx context.Context, cmd *fsm.Progress) error {
	o, err := s.tenure.Do(ctx, cmd)
	switch {
	case err != nil:
		return trouble(err)
	case o.Code == fsm.Done:
		return nil
	case o.Code == fsm.Unknown:
		return openai.ErrNoResponse
	case o.Code == fsm.Refused:
		return openai.ErrStoreFull
	}
	return openai.ErrEnded
}

// Events returns events of a background response, as this replica has applied them, and waits for one.
func (s *responses) Events(ctx context.Context, principal, id string, from int64) ([]respond.Event, bool, error) {
	from = max(from, 0)
	if _, err := s.mine(ctx, principal, id); err != nil {
		return nil, true, err
	}
	for {
		changed := s.store.ResponseChanges(fsm.ResponseID(id))
		chunks, row, err := s.store.ResponseEvents(fsm.ResponseID(id), from)
		if errors.Is(err, storage.ErrNoResponse) || err == nil && string(row.Principal) != principal {
			return nil, true, openai.ErrNoResponse
		}
		if err != nil {
			s.log.Error("stored response can't be read", "response", id, "error", err)
			return nil, true, err
		}
		events, err := decodeEvents(chunks, from)
		if err != nil {
			return nil, true, fmt.Errorf("events of response %s: %w", id, err)
		}
		over := row.Status.Final()
		if over && row.Cause != fsm.RefusalNone && from <= row.Events {
			last, err := s.lastEvent(id)
			if err != nil {
				return nil, true, err
			}
			events = append(events, last)
		}
		if len(events) > 0 || over {
			return events, over, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// lastEvent is the last event of a response that the machine gave up: nobody has written one.
func (s *responses) lastEvent(id string) (respond.Event, error) {
	r, err := s.store.Response(fsm.ResponseID(id))
	if errors.Is(err, storage.ErrNoResponse) {
		return respond.Event{}, openai.ErrNoResponse
	}
	if err != nil {
		return respond.Event{}, err
	}
	_, last := respond.GiveUp(r.Object, r.Cause.String(), givenUp(r.Cause))
	return last, nil
}

// statusOf is a status in the machine's words.
func statusOf(s respond.Status) (fsm.ResponseStatus, bool) {
	for i := fsm.ResponseQueued; i <= fsm.ResponseIncomplete; i++ {
		if i.String() == string(s) {
			return i, true
		}
	}
	return 0, false
}
