package openai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"iop/edged/openai/respond"
)

// jobsMax is how many responses may run in the background of one edge.
const jobsMax = 1024

// jobs are the responses that run in the background of this edge. A job is an exchange like every other, without a
// client: it waits in the same queue, and its events go to the Store. So the Store alone says what it survives.
type jobs struct {
	mu       sync.Mutex
	by       map[string]*job
	stopping bool
	running  sync.WaitGroup
}

// job is a background response that runs here.
type job struct {
	s             *Server
	principal, id string
	ctx           context.Context
	cancel        context.CancelFunc
	halted        atomic.Bool // the edge stops
	status        respond.Status
	runner        Runner
}

// Owner is a Store that has background responses run itself: a Submit is all that happens here, and whoever is granted
// one calls Perform, on any replica and again if a run was lost.
type Owner interface {
	Store
	Owns() bool
}

// Perform runs a response that a Store owns, and returns when the run is over and its end, or none if ctx ended, is in the
// Store. by leads it through admission.
func (s *Server) Perform(ctx context.Context, r *Stored, by Runner) error {
	j, f := s.newJob(r.Principal, r.ID, by)
	switch {
	case f != nil:
		return fmt.Errorf("perform response %s: %s", r.ID, f.message)
	case j == nil:
		return fmt.Errorf("perform response %s: it runs here already", r.ID)
	}
	defer j.over()
	defer context.AfterFunc(ctx, func() { j.halted.Store(true); j.cancel() })()
	s.perform(j, r, "")
	return ctx.Err()
}

// owned tells whether the Store has background responses run itself.
func (s *Server) owned() bool {
	o, ok := s.o.Store.(Owner)
	return ok && o.Owns()
}

// newJob makes place for a job, or tells why there is none; neither: it runs already.
func (s *Server) newJob(principal, id string, by Runner) (*job, *failure) {
	j := &job{s: s, principal: principal, id: id, status: respond.Queued, runner: by}
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	switch {
	case s.jobs.stopping:
		return nil, &failure{kind: kindStopping, message: refusals["stopping"].message, dispatched: DispatchedNo}
	case len(s.jobs.by) >= jobsMax:
		return nil, storeFailure(ErrStoreFull, id)
	case s.jobs.by[keyIn(principal, id)] != nil:
		return nil, nil // it runs already
	}
	if s.jobs.by == nil {
		s.jobs.by = map[string]*job{}
	}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	s.jobs.by[keyIn(principal, id)] = j
	s.jobs.running.Add(1)
	return j, nil
}

// over gives the job's place back.
func (j *job) over() {
	j.cancel()
	j.s.jobs.mu.Lock()
	delete(j.s.jobs.by, keyIn(j.principal, j.id))
	j.s.jobs.mu.Unlock()
	j.s.jobs.running.Done()
}

// cancelJob ends a job, if it runs here; what becomes of its response was recorded before.
func (s *Server) cancelJob(principal, id string) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	if j := s.jobs.by[keyIn(principal, id)]; j != nil {
		j.cancel()
	}
}

// Stop ends what runs in the background, without a word about it to the Store, and waits for that as long as ctx says.
func (s *Server) Stop(ctx context.Context) {
	s.jobs.mu.Lock()
	s.jobs.stopping = true
	for _, j := range s.jobs.by {
		j.halted.Store(true)
		j.cancel()
	}
	s.jobs.mu.Unlock()
	over := make(chan struct{})
	go func() { s.jobs.running.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

func (j *job) stopped() bool { return j.halted.Load() }

// progress hands events to the store, and the response as it stands when its state changes.
func (j *job) progress(events []respond.Event, s respond.Status, run *respond.Run) error {
	p := Progress{Status: s, Events: events}
	if s != j.status {
		p.Object = run.Object()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(j.ctx), keepTime)
	defer cancel()
	if err := j.s.o.Store.Progress(ctx, j.principal, j.id, p); err != nil {
		return err
	}
	j.status = s
	return nil
}

// submit stores a background response, has it run, and answers at once.
func (x *exchange) submit(ctx context.Context) (abort bool) {
	p := x.resp
	x.cleanHeader()
	r := x.stored()
	r.Events = p.run.Open(true)
	r.Object, r.Status, r.Background = p.run.Object(), respond.Queued, true
	r.Admission, r.Header = x.id, x.r.Header.Clone()
	x.trace.keepTrace(r.Header)
	r.Ask = x.asked()
	r.Request, r.Sum = append([]byte(nil), p.original...), sha256.Sum256(p.original)
	r, f := x.submitted(ctx, r, x.provKey)
	if f != nil {
		x.fail = f
		abort = x.finish()
		x.account()
		return abort
	}
	x.ours(x.w.Header())
	if p.q.Stream {
		return x.s.follow(x.w, x.r, r.Principal, r.ID, 0)
	}
	x.patience()
	writeJSON(x.w, http.StatusOK, append(append(json.RawMessage(nil), r.Object...), '\n'))
	x.endPatience()
	return false
}

// submitted stores a response and starts its job; the response that there is already takes its place.
func (x *exchange) submitted(ctx context.Context, r *Stored, key string) (*Stored, *failure) {
	s := x.s
	var j *job
	if s.owned() && key != "" {
		return nil, &failure{kind: kindMalformed, param: "background", message: "A background response may run after a restart or on another replica, and your own key for the provider is not stored. Leave the key out, or leave 'background' out.", dispatched: DispatchedNo}
	}
	if !s.owned() {
		var f *failure
		if j, f = s.newJob(r.Principal, r.ID, s.o.Runner); f != nil {
			return nil, f
		}
	}
	before, err := s.o.Store.Submit(ctx, r)
	if j != nil && (err != nil || before != nil) {
		j.over()
	}
	switch {
	case err != nil:
		if refusedBy(err) {
			return nil, refusal(err, &model{})
		}
		x.log(slog.LevelWarn, "response not stored", "response", r.ID, "error", err)
		return nil, storeFailure(err, r.ID)
	case before != nil && before.Sum != r.Sum:
		return nil, &failure{kind: kindConflict, message: "This Idempotency-Key was used for a different response. Use another key.", dispatched: DispatchedNo}
	case before != nil:
		return before, nil
	case s.owned():
		return r, nil
	case j == nil: // it was forgotten while it still ran
		return nil, &failure{kind: kindConflict, message: refusals["in_progress_elsewhere"].message, dispatched: DispatchedNo}
	}
	go func() {
		defer j.over()
		s.perform(j, r, key)
	}()
	return r, nil
}

// refusedBy tells whether an error is a refusal of admission.
func refusedBy(err error) bool {
	var coded interface{ Code() string }
	if !errors.As(err, &coded) {
		return false
	}
	_, ok := refusals[coded.Code()]
	return ok
}

// perform runs a stored response.
func (s *Server) perform(j *job, r *Stored, key string) {
	q := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: routeResponses.path}, RequestURI: routeResponses.path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.Header.Clone(),
	}
	x := s.take(nowhere{}, q.WithContext(j.ctx), &routeResponses)
	defer s.putBack(x)
	defer x.uncharge()
	m := s.o.Metrics
	m.Opened()
	defer m.Closed()
	x.resp = &responding{job: j, opened: true, created: createdAt(r)}
	x.startTrace(q.Header)
	x.who, x.id, x.shown, x.provKey = caller{principal: r.Principal, token: r.Token}, r.Admission, r.ID, key
	x.body = append(x.body[:0], r.Request...)
	x.answer.early = true // nobody waits for a status any more: what goes wrong is told as an event
	if x.fail = x.look(j.ctx); x.fail == nil {
		x.run(j.ctx)
	}
	if x.resp.run == nil { // it can't be run any more, and must say so
		if x.resp.q == nil {
			x.resp.q = &respond.Request{ID: r.ID, Model: r.Model, Background: true, Store: true, Previous: r.Previous}
		}
		x.resp.run = respond.NewRun(x.resp.q, r.Model, r.Created)
	}
	if !x.resp.again {
		x.finish()
	}
	x.account()
	x.endTrace(false)
}

// failJob ends a background response whose events could not be stored.
func (x *exchange) failJob() {
	if !x.inBackground() || errors.Is(x.answer.writeErr, ErrEnded) || errors.Is(x.answer.writeErr, ErrNoResponse) {
		return
	}
	x.log(slog.LevelWarn, "response not stored", "error", x.answer.writeErr)
	x.fail = storeFailure(x.answer.writeErr, x.resp.q.ID)
	x.err = nil
	x.failResponse()
}

func (x *exchange) inBackground() bool { return x.resp != nil && x.resp.job != nil }

// nowhere is the client of a response that runs in the background.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
