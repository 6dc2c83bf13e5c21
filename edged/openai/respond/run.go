package respond

import (
	"encoding/json"

	"iop/edged/openai/pieces"
)

// Run makes one response of what a backend answers. It is used by one goroutine.
//
//	Open ──▶ (Waiting…) ──▶ Begin ──▶ Write… ──▶ End or Fail or Cancel ──▶ Object
type Run struct {
	q       *Request
	model   string
	created int64
	status  Status

	outputs []*output
	current *output         // the message or reasoning that is being written
	calls   map[int]*output // by the index that chat has for them
	finish  string
	done    bool // the stream has said that it is over
	usage   json.RawMessage
	failure *Failure
	reason  string // of being incomplete
	size    int    // of all that was said

	relays bool            // the answer is a response already
	theirs json.RawMessage // that response, when it has ended
	stream bool
	frames pieces.Frames
	piece  pieces.Chunk // the last one
	whole  []byte       // an answer that is no stream
	events []Event
	ended  int64
}

// Failure is why a response failed.
type Failure struct{ Code, Message string }

// answerMax bounds a whole answer, or all that a stream says, in bytes.
const answerMax = 32 << 20

// Codes of failures of ours.
const (
	codeServer  = "server_error"
	codeTooMuch = "answer_too_large"
)

// NewRun begins a response to q. model is its name as the client knows it, created in Unix seconds.
func NewRun(q *Request, model string, created int64) *Run {
	return &Run{q: q, model: model, created: created, status: InProgress, calls: map[int]*output{}}
}

// Open gives the events that begin every stream. A response that waits first is queued.
func (r *Run) Open(queued bool) []Event {
	if !queued {
		return []Event{whole(EventCreated, r.Object()), whole(EventInProgress, r.Object())}
	}
	r.status = Queued
	return []Event{whole(EventCreated, r.Object()), whole(EventQueued, r.Object())}
}

// Waiting gives a sign of life while the request waits: agents take nothing else for one.
func (r *Run) Waiting() Event { return whole(EventInProgress, r.Object()) }

// Start says that a queued response is being worked on; nothing if it was not queued.
func (r *Run) Start() []Event {
	if r.status != Queued {
		return nil
	}
	r.status = InProgress
	return []Event{whole(EventInProgress, r.Object())}
}

// Begin begins an answer: an event stream, or a whole one.
func (r *Run) Begin(stream bool) { r.stream = stream }

// Write takes the next bytes of the answer and gives the events that they make. The events are valid until the next call.
func (r *Run) Write(p []byte) []Event {
	r.events = r.events[:0]
	switch {
	case r.failure != nil || r.done:
	case r.stream:
		if !r.frames.Write(p, r.frame, r.comment) {
			r.broken(codeTooMuch, "The provider sent an event that is too large.")
		}
	case len(r.whole)+len(p) > answerMax:
		r.broken(codeTooMuch, "The provider's answer is too large.")
	default:
		r.whole = append(r.whole, p...)
	}
	return r.events
}

// broken notes that no good end can come any more.
func (r *Run) broken(code, message string) {
	if r.failure == nil {
		r.failure = &Failure{Code: code, Message: message}
	}
}

// End is the end of an answer that came to its end, at a time in Unix seconds. The response is completed, incomplete or,
// if the answer says so or stops in the middle, failed.
func (r *Run) End(now int64) []Event {
	r.events = r.events[:0]
	if r.status.Final() {
		return nil
	}
	if !r.stream && r.failure == nil {
		r.readWhole()
	}
	if r.finish == "" && !r.done {
		r.broken(codeServer, "The provider's answer broke off. Try again.")
	}
	switch {
	case r.failure != nil:
		return r.close(Failed, now)
	case r.finish == "length":
		r.reason = "max_output_tokens"
		return r.close(Incomplete, now)
	case r.finish == "content_filter":
		r.reason = "content_filter"
		return r.close(Incomplete, now)
	}
	if len(r.outputs) == 0 && !r.relays {
		r.say(typeMessage)
		r.current.part(r, partText)
	}
	return r.close(Completed, now)
}

// Fail ends the response as failed. It does nothing if it has ended.
func (r *Run) Fail(code, message string, now int64) []Event {
	r.events = r.events[:0]
	if r.status.Final() {
		return nil
	}
	r.broken(code, message)
	return r.close(Failed, now)
}

// Cancel ends the response as cancelled. It does nothing if it has ended.
func (r *Run) Cancel(now int64) []Event {
	r.events = r.events[:0]
	if r.status.Final() {
		return nil
	}
	return r.close(Cancelled, now)
}

// close ends every item and then the response.
func (r *Run) close(s Status, now int64) []Event {
	r.current = nil
	for _, o := range r.outputs {
		o.close(r, s)
	}
	r.status, r.ended = s, now
	r.events = append(r.events, whole(finalEvent(s), r.Object()))
	return r.events
}

// Status is the response's state.
func (r *Run) Status() Status { return r.status }

// Failure is why the response failed, nil if it did not.
func (r *Run) Failure() *Failure { return r.failure }

// TooMuch tells that the answer is beyond all bounds, and no more of it is of use.
func (r *Run) TooMuch() bool { return r.failure != nil && r.failure.Code == codeTooMuch }

// emit adds an event.
func (r *Run) emit(kind string, list ...pair) { r.events = append(r.events, event(kind, list...)) }

// grown counts what is said; false: it is too much.
func (r *Run) grown(n int) bool {
	if r.size += n; r.size > answerMax {
		r.broken(codeTooMuch, "The provider's answer is too large.")
		return false
	}
	return true
}
