package chat

import (
	"errors"
	"net/http"
	"time"
)

// Answer takes the rendered answer; an adapter.Answer is one.
type Answer interface {
	Head(status int, h http.Header) error
	Data(p []byte) error
}

// Options of a Writer. All may be left out.
type Options struct {
	Model       string    // of the answer; "" is the request's
	ID          string    // of the answer; "" is a random one
	Created     time.Time // zero is now
	Fingerprint string    // system_fingerprint; "" is null
	WholeMax    int       // bytes of an answer that is not streamed; 0 is 32 MiB
}

// Usage counts tokens. Cached and Reasoning are parts of Prompt and Completion.
type Usage struct {
	Prompt, Completion, Cached, Reasoning int64
}

// Reasons why a choice finishes.
const (
	FinishStop      = "stop"
	FinishLength    = "length"
	FinishToolCalls = "tool_calls"
	FinishFilter    = "content_filter"
)

// ErrTooLarge: an answer that is not streamed has grown beyond Options.WholeMax.
var ErrTooLarge = errors.New("the answer is larger than one that is not streamed may be")

// ErrUnfinished: the answer ended before each choice had finished.
var ErrUnfinished = errors.New("the answer ended before its choices had finished")

// Writer renders one answer: Text, Reasoning, ToolCall … for each choice, then Finish, at last End. One goroutine uses
// it. In a stream everything is sent as it comes, else it is collected and sent by End. An error of the Answer stays:
// nobody reads any more, and everything later returns it.
type Writer struct {
	q   *Request
	a   Answer
	o   Options
	err error // of the Answer
	// more in the implementation
	begun bool
}

// NewWriter returns a writer of the answer to q.
func NewWriter(q *Request, a Answer, o Options) *Writer { return &Writer{q: q, a: a, o: o} }

// Begun reports whether the head has been sent.
func (w *Writer) Begun() bool { return w.begun }

// Err is the error of the Answer, if it has failed.
func (w *Writer) Err() error { return w.err }

// At selects the choice that the next calls are about, from 0. At first it is 0.
func (w *Writer) At(choice int) {}

// Open sends the head of a stream before anything has come. It need not be called.
func (w *Writer) Open() error { return w.err }

// Text adds to the choice's text. A character may be split over calls.
func (w *Writer) Text(s string) error { return w.err }

// Reasoning adds to the choice's reasoning_content.
func (w *Writer) Reasoning(s string) error { return w.err }

// Refusal adds to the choice's refusal.
func (w *Writer) Refusal(s string) error { return w.err }

// ToolCall adds to tool call index of the choice. id and name come with its first piece, arguments in any number of them.
func (w *Writer) ToolCall(index int, id, name, arguments string) error { return w.err }

// Usage sets what the answer has cost. It is sent at the end.
func (w *Writer) Usage(u Usage) {}

// Finish ends the choice.
func (w *Writer) Finish(reason string) error { return w.err }

// Embedding adds the vector of input i, in the inputs' order.
func (w *Writer) Embedding(v []float32) error { return w.err }

// End ends the answer in order: usage and [DONE], or the whole answer at once.
func (w *Writer) End() error { return w.err }

// Fail ends the answer with a problem. Before the head it is an error answer with its status, and the run has ended in
// order. Within a stream it is an error event and broke is true: the run must end as backend_broke, so that the client's
// connection is reset.
func (w *Writer) Fail(p *Problem) (broke bool, err error) { return w.begun, w.err }
