package nodelink

import (
	"net/http"
	"time"

	"iop/fsm"
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
	Trace    string // W3C traceparent, or empty
}

// Answer takes what a backend answers, in order, from one goroutine. Both methods pass it on at once. A method that
// blocks holds up only its own exchange; an error ends the exchange with CodeAnswerFailed and cancels the run.
type Answer interface {
	// Head takes status and headers, once, before any Data. The receiver owns h.
	Head(status int, h http.Header) error
	// Data takes a piece of the body as it arrived. p is valid during the call.
	Data(p []byte) error
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
	CodeLinkLost     = "link_lost"     // the link was lost, or not there
	CodeNoConnection = "no_connection" // no data connection in time; not dispatched
	CodeAnswerFailed = "answer_failed" // Answer returned an error
	CodeWire         = "wire_broke"    // the data connection broke; nothing is known of the backend
)

// End tells how a run ended.
type End struct {
	Dispatched Dispatched
	Code       string // "" = as it should
	Message    string // for people
	Complete   bool   // the whole answer was handed on
}
