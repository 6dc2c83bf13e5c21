package edged

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"iop/edged/admission"
	"iop/edged/openai"
	"iop/fsm"
	"iop/storage"
)

// A background response that is granted to this edge is run here, over the same way as any request but without a client:
//
//	EffectGranted ──▶ run ──Dispatch──▶ node      its events: Progress, at most every progressEach or progressBytes
//	                   │                          its end: Progress with a final status, once
//	                   └── Release, last of all. If the response has not ended by then, the machine puts the request back
//	                       to its place and it runs again, here or elsewhere.
//
// The lease tells runs apart: the machine takes no word from a run that it has taken the lease from.

const (
	// progressEach and progressBytes bound how long events of a run wait to be written.
	progressEach  = 500 * time.Millisecond
	progressBytes = 32 << 10
	// progressMax bounds what is gathered while nothing can be written.
	progressMax = 4 << 20
	// finishTime is how long the end of a run is tried to be written; without it, it runs again.
	finishTime = 2 * time.Minute
	// releaseTime is how long the release of a lease is tried; later, it goes back with its link or session.
	releaseTime = 2 * time.Minute
	// The pause before a response that was not run is put back: it doubles each time.
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// run is a background response that runs here.
type run struct {
	s      *responses
	id     fsm.ResponseID
	grant  fsm.Grant
	cancel context.CancelFunc
	before *run          // of the same response, on an earlier lease: it has to be over first
	done   chan struct{} // closed when it is over

	writing sync.Mutex // one write at a time; taken before mu

	mu     sync.Mutex // guards the rest
	events []byte
	count  int64
	object []byte
	status fsm.ResponseStatus
	timer  *time.Timer
	err    error // why nothing can be written any more
}

// responsePrefix begins the name of every background response, and of no other request.
const responsePrefix = "resp_"

// effects takes what the log says about background responses of this edge. The dispatcher calls it; it must not block.
func (s *responses) effects(effects []fsm.Effect) {
	for i := range effects {
		e := &effects[i]
		if !strings.HasPrefix(string(e.Grant.Request), responsePrefix) {
			continue
		}
		switch e.Kind {
		case fsm.EffectGranted:
			s.begin(e.Grant)
		case fsm.EffectUnwanted, fsm.EffectReturned:
			s.end(&e.Grant)
		}
	}
}

// begin has a granted response run.
func (s *responses) begin(g fsm.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.server == nil {
		return // the lease goes back with the session
	}
	ctx, cancel := context.WithCancel(context.Background())
	id := fsm.ResponseID(g.Request)
	r := &run{s: s, id: id, grant: g, cancel: cancel, before: s.runs[id], done: make(chan struct{})}
	s.runs[id] = r
	if r.before != nil {
		r.before.cancel() // its lease is gone
	}
	s.metrics.Granted(g.Class.String())
	s.working.Add(1)
	go func() {
		defer s.working.Done()
		r.run(ctx, s.server)
	}()
}

// end cancels the run on a lease.
func (s *responses) end(g *fsm.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[fsm.ResponseID(g.Request)]; r != nil && r.grant.Lease == g.Lease {
		r.cancel()
	}
}

// stop begins nothing any more, ends what runs without a word about it, and waits for that as long as ctx says.
func (s *responses) stop(ctx context.Context) {
	s.mu.Lock()
	s.over = true
	for _, r := range s.runs {
		r.cancel()
	}
	s.mu.Unlock()
	over := make(chan struct{})
	go func() { s.working.Wait(); close(over) }() // they end with the store at the latest
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// run leads the response through one grant.
func (r *run) run(ctx context.Context, server *openai.Server) {
	defer r.over()
	if r.before != nil {
		<-r.before.done
		r.before = nil
	}
	g := &granted{run: r, why: fsm.ReasonNeverSent}
	if stored, err := r.load(); err != nil {
		if !errors.Is(err, openai.ErrEnded) && !errors.Is(err, storage.ErrNoResponse) {
			r.s.log.Error("background response can't be run", "request", r.id, "error", err)
		}
	} else if ctx.Err() == nil {
		if err := server.Perform(ctx, stored, g); err != nil && ctx.Err() == nil {
			r.s.log.Warn("background response not run", "request", r.id, "error", err)
		}
	}
	r.settle()
	if g.why == fsm.ReasonNeverSent || g.requeue {
		r.pause(ctx)
	}
	r.release(g)
}

// load reads what is to be run.
func (r *run) load() (*openai.Stored, error) {
	got, err := r.s.store.Response(r.id)
	switch {
	case err != nil:
		return nil, err
	case got.Status.Final(): // it ended while it was granted anew
		return nil, openai.ErrEnded
	}
	return decodeRecord(got)
}

func (r *run) over() {
	r.cancel()
	r.s.mu.Lock()
	if r.s.runs[r.id] == r {
		delete(r.s.runs, r.id)
	}
	r.s.mu.Unlock()
	close(r.done)
}

// pause keeps what could not be run from being tried again and again at full speed.
func (r *run) pause(ctx context.Context) {
	row, lease, err := r.s.store.ResponseRow(r.id)
	if err != nil || row.Status.Final() || lease != r.grant.Lease {
		return
	}
	d := pauseMin << min(row.Attempt-min(row.Lost, row.Attempt), 8)
	timer := time.NewTimer(min(d, pauseMax))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// release gives the lease back.
func (r *run) release(g *granted) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	cmd := &fsm.Release{Lease: r.grant.Lease, Reason: g.why, Requeue: g.requeue, Usage: g.usage}
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		o, err := r.s.tenure.Do(ctx, cmd)
		switch {
		case err == nil && o.Code == fsm.Returned:
			r.s.metrics.Returned(g.why.String())
			return
		case err == nil, permanent(err), ctx.Err() != nil:
			return
		}
		r.s.metrics.ReleaseRetried()
		if !wait(ctx, pause) {
			return
		}
	}
}

// wait waits; false: ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// granted is the Runner of a response that has its slot already.
type granted struct {
	*run
	why     fsm.Reason
	requeue bool
	usage   fsm.Usage
}

// Run dispatches once. A run that was lost with its link, or did not take place, is to be taken up again.
func (g *granted) Run(ctx context.Context, q openai.Request, c openai.Caller) error {
	g.why, g.requeue = c.Dispatch(ctx, g.grant, 0)
	if u, ok := c.(admission.Reporter); ok && q.Metered {
		g.usage = u.Used()
	}
	if g.requeue {
		g.s.metrics.Requeued()
	}
	if g.requeue || g.why == fsm.ReasonLinkLost {
		return openai.ErrAgain
	}
	return nil
}

// RetryAfter is of no use to who is not there.
func (g *granted) RetryAfter() time.Duration { return time.Second }

// add takes word of the run. What ends the response is written before add returns, as is a new state; events may wait.
func (r *run) add(ctx context.Context, p openai.Progress) error {
	status, ok := statusOf(p.Status)
	if !ok {
		status = fsm.ResponseInProgress
	}
	r.mu.Lock()
	if r.err != nil {
		defer r.mu.Unlock()
		return r.err
	}
	r.events = encodeEvents(r.events, p.Events)
	r.count += int64(len(p.Events))
	r.status = status
	if p.Object != nil {
		r.object = p.Object
	}
	full := len(r.events) >= progressBytes
	if r.timer == nil && !full && !status.Final() {
		r.s.working.Add(1) // this run is one of them, so nobody has waited yet
		r.timer = time.AfterFunc(progressEach, func() {
			defer r.s.working.Done()
			_ = r.write(context.Background()) // an error is noted
		})
	}
	r.mu.Unlock()
	switch {
	case status.Final():
		return r.finish()
	case full:
		return r.write(context.WithoutCancel(ctx)) // without an outcome it would not be known what is written
	}
	return nil
}

// finish writes the end.
func (r *run) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishTime)
	defer cancel()
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := r.write(context.Background()) // without an outcome it is not known what is written
		if err == nil || !passing(err) || !wait(ctx, pause) {
			return err
		}
	}
}

// passing tells of an error that had no effect and will pass.
func passing(err error) bool {
	return errors.Is(err, admission.ErrOverloaded) || errors.Is(err, admission.ErrNoLeader)
}

// write writes what was gathered. If that fails for the moment, it is kept.
func (r *run) write(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	r.stopTimer()
	if r.err != nil || r.count == 0 && r.object == nil && !r.status.Final() {
		defer r.mu.Unlock()
		return r.err
	}
	cmd := &fsm.Progress{
		Response: r.id, Lease: r.grant.Lease, Status: r.status, Payload: fsm.Payload{Object: r.object, Events: r.events, Count: r.count},
	}
	r.events, r.count, r.object = nil, 0, nil
	r.mu.Unlock()
	err := r.s.put(ctx, cmd)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && cmd.Status.Final():
		r.err = openai.ErrEnded
	case err == nil:
	case passing(err):
		r.events, r.count = append(cmd.Events, r.events...), r.count+cmd.Count
		if r.object == nil {
			r.object = cmd.Object
		}
		if len(r.events) <= progressMax || cmd.Status.Final() {
			if cmd.Status.Final() {
				return err
			}
			return nil // later
		}
		r.err = err
	case errors.Is(err, openai.ErrStoreFull) && !cmd.Status.Final():
		return err // the end is taken all the same
	default:
		r.err = err
	}
	return err
}

// stopTimer takes the timer back. The caller holds mu.
func (r *run) stopTimer() {
	if r.timer != nil && r.timer.Stop() {
		r.s.working.Done()
	}
	r.timer = nil
}

// settle is the end of writing: what is left of a run that is not over for good is written, too, as far as it can be.
func (r *run) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), progressEach)
	defer cancel()
	_ = r.write(ctx) // if it fails, the next run says it anew
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopTimer()
	if r.err == nil {
		r.err = openai.ErrEnded
	}
}
