package nodelink

import (
	"context"
	"errors"
	"net/http"
	"time"

	"iop/fsm"
	"iop/proto/nodepb"
)

// Exchange is one request to a backend, as it is to reach it. It is not modified; Body must not change until the end.
type Exchange struct {
	Grant   fsm.Grant
	Adapter string // of the provider, at the node
	Kind    string // nodepb.KindTunnel (also if empty) or nodepb.KindRun
	Method  string
	Path    string // with the query, percent-encoding kept
	Header  http.Header
	Body    []byte
	// Deadline of the backend call; zero = none. It travels as what is left of it, so clocks may differ.
	Deadline time.Time
	Trace    string // W3C traceparent, as the edge decided; empty: it has no traces, and a client's own is in Header
	Request  string // the request's id as its client knows it, for logs here and at the node
}

// Answer takes what a backend answers, in order, from one goroutine. A method that blocks holds up only its own exchange;
// an error ends the exchange with CodeAnswerFailed and cancels the run.
type Answer interface {
	// Head takes status and headers, once, before any Data. The receiver owns h.
	Head(status int, h http.Header) error
	// Data takes a piece of the body as it arrived. p is valid during the call.
	Data(p []byte) error
	// Flush says that nothing more has arrived so far: what was handed on must go out now. It comes before every wait
	// for more, but not after the end, so that pieces that arrived together go out together.
	Flush() error
}

// Dispatched tells whether the backend ran the request.
type Dispatched uint8

// What is known of it. Only DispatchedNo allows another try.
const (
	DispatchedUnknown Dispatched = iota
	DispatchedNo                 // the backend provably did not run it
	DispatchedYes
)

func (d Dispatched) String() string {
	switch d {
	case DispatchedNo:
		return "no"
	case DispatchedYes:
		return "yes"
	}
	return "unknown"
}

// The codes of an End. Those of the node's adapter (connect_failed, concurrency, busy, backend_broke, backend_timeout
// and others) pass through as they are.
const (
	CodeCanceled     = "canceled"      // the context ended
	CodeLinkLost     = "link_lost"     // the link or its data connection was lost, or was not there
	CodeNoConnection = "no_connection" // no data connection in time; not dispatched
	CodeAnswerFailed = "answer_failed" // Answer returned an error
	CodeMalformed    = "malformed"     // method, path or headers can't travel; not dispatched
)

// End tells how a run ended.
type End struct {
	Dispatched Dispatched
	Code       string // "" = as it should
	Message    string // for people
	Complete   bool   // the whole answer was handed on
}

// run is an exchange in progress. Numbers are never reused within a generation.
type run struct {
	number uint64
	lease  uint64
	needs  uint64 // the newest configuration that was pushed before it
	id     string // of the request, for logs
	conn   *dataConn
	sent   bool // of the exchange's goroutine: the node may have seen it

	// Under the link's lock:
	broken bool             // Cancel is on its way and the connection closed
	over   *nodepb.RunEnded // the node's word
	ended  chan struct{}    // closed with it; nil until somebody waits
}

// begin makes a run of a taken connection; nil: the link was lost meanwhile.
func (k *link) begin(x *Exchange, c *dataConn) *run {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isLost || k.retired {
		delete(k.pool.busy, c)
		c.shut()
		return nil
	}
	k.nextRun++
	r := &run{number: k.nextRun, lease: uint64(x.Grant.Lease), needs: k.pushed, id: x.Request, conn: c}
	k.runs[r.number] = r
	return r
}

// finish ends a run, and with it a link that only waits for its last one.
func (k *link) finish(r *run, reusable bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runs, r.number)
	delete(k.pool.busy, r.conn)
	if reusable && !r.broken && r.over == nil {
		k.offer(r.conn)
	} else {
		r.conn.shut()
	}
	switch {
	case len(k.runs) > 0:
	case k.retired:
		k.loseLocked(fsm.ReasonSessionEnded, false, true)
	case k.leaving:
		k.loseLocked(fsm.ReasonGoodbye, true, true)
	}
}

// breakOff cancels a run: the node is told, and the connection closed, which wakes whoever reads or writes it. What has
// ended meanwhile is left alone.
func (k *link) breakOff(r *run, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.broken || k.runs[r.number] != r {
		return
	}
	r.broken = true
	r.conn.shut()
	k.sendLocked(&nodepb.EdgeFrame{Frame: &nodepb.EdgeFrame_Cancel{Cancel: &nodepb.Cancel{Run: r.number, Reason: reason}}})
}

// runEnded takes the node's word on a run that trailers could not tell of, or that was canceled.
func (k *link) runEnded(e *nodepb.RunEnded) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.runs[e.Run]
	if r == nil || r.lease != e.Lease && e.Lease != 0 || r.over != nil {
		k.links.o.Metrics.FrameDropped("run_ended")
		return
	}
	r.over = e
	if r.ended != nil {
		close(r.ended)
		return
	}
	// The node gave up the connection; its close may never arrive.
	_ = r.conn.raw.SetReadDeadline(time.Now().Add(time.Second))
}

// settle finds out how a run ended whose connection broke, or was closed by a cancel: the node's word, the link's loss,
// or FenceTimeout.
func (k *link) settle(ctx context.Context, r *run, cause error) (end End, unseen bool) {
	k.breakOff(r, cause.Error())
	over, lost := k.awaitEnd(r)
	k.finish(r, false)
	if lost {
		k.awaitCommanded()
	}

	var failed *answerError
	switch {
	case lost:
		end.Code, end.Message = CodeLinkLost, "the node's link was lost"
	case ctx.Err() != nil:
		end.Code, end.Message = CodeCanceled, context.Cause(ctx).Error()
	case errors.As(cause, &failed):
		end.Code, end.Message = CodeAnswerFailed, failed.err.Error()
	case over != nil && over.Unseen:
		end.Code, end.Message = CodeNoConnection, "the data connection was dead: "+cause.Error()
	case over != nil && over.Code != "" && over.Code != CodeCanceled:
		end.Code, end.Message = over.Code, over.Message
	default:
		end.Code, end.Message = CodeLinkLost, "the data connection broke: "+cause.Error()
	}
	if over != nil {
		end.Dispatched = dispatched(over.Dispatched)
	}
	return end, over != nil && over.Unseen
}

// awaitCommanded waits until the machine knows that the link is lost, for at most FenceTimeout: what is released behind
// it is known to be no word about the run, whose backend may still be busy.
func (k *link) awaitCommanded() {
	timer := time.NewTimer(k.links.o.FenceTimeout)
	defer timer.Stop()
	select {
	case <-k.commanded:
	case <-timer.C:
	}
}

// awaitEnd waits for the node's word on r.
func (k *link) awaitEnd(r *run) (over *nodepb.RunEnded, lost bool) {
	k.mu.Lock()
	if r.over == nil {
		r.ended = make(chan struct{})
	}
	ended := r.ended
	k.mu.Unlock()
	if ended != nil {
		timer := time.NewTimer(time.Duration(k.links.fenceTimeout.Load()))
		defer timer.Stop()
		select {
		case <-ended:
		case <-k.lost:
		case <-timer.C:
			k.links.o.Logger.Warn("run: the node did not tell its end", "request", r.id, "node", k.node, "generation", k.generation, "run", r.number)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.over, k.isLost && r.over == nil
}
