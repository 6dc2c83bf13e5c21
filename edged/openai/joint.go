package openai

import (
	"context"
	"net/http"
	"time"

	"iop/fsm"
)

// Runner admits requests: admission.Admission.
type Runner interface {
	// Run leads a request through admission. It returns nil if c.Dispatch had the last word, else the error of ctx or an
	// error with a method Code() string.
	Run(ctx context.Context, r Request, c Caller) error
	// RetryAfter estimates when a refused request may find a place.
	RetryAfter() time.Duration
}

// Request is what a Runner must know. It has the shape of admission.Request.
type Request struct {
	ID          fsm.RequestID
	Fingerprint fsm.Fingerprint
	Model       fsm.ModelID
	Class       fsm.Class
	InputTokens int64
	Needs       fsm.Needs
	Provider    fsm.ProviderID
	Served      string
	Principal   fsm.PrincipalID
	Token       string
	Metered     bool // what the run used is asked of the Caller, which then has a method Used() fsm.Usage
	MaxWait     fsm.Time
	Tick        time.Duration
	Trace       string // id of its trace, if it is recorded
}

// Caller is called back by a Runner, from the goroutine that called Run.
type Caller = interface {
	Queued(position int)
	Dispatch(ctx context.Context, g fsm.Grant, waited time.Duration) (why fsm.Reason, requeue bool)
}

// Backend exchanges a request with a granted provider: nodelink.Links.
type Backend interface {
	// Exchange returns when the run is really over. It keeps neither x nor anything of it.
	Exchange(ctx context.Context, x *Exchange, a Answer) End
}

// Exchange is a request as a backend is to get it. It has the shape of nodelink.Exchange.
type Exchange struct {
	Grant    fsm.Grant
	Adapter  string
	Kind     string
	Method   string
	Path     string
	Header   http.Header
	Body     []byte
	Deadline time.Time
	Trace    string // W3C traceparent, as the edge decided; empty: it has no traces, and a client's own is in Header
	Request  string // the id that the client knows, for logs
}

// Answer takes what a backend answers: Head once, then Data. p is valid during the call; an error ends the exchange.
// Flush comes before every wait for more: what was handed on must go out then.
type Answer interface {
	Head(status int, h http.Header) error
	Data(p []byte) error
	Flush() error
}

// Dispatched tells whether the backend ran the request.
type Dispatched uint8

// What is known of it.
const (
	DispatchedUnknown Dispatched = iota
	DispatchedNo
	DispatchedYes
)

// header is the value of x-iop-dispatched.
func (d Dispatched) header() string {
	switch d {
	case DispatchedNo:
		return "false"
	case DispatchedYes:
		return "true"
	}
	return "unknown"
}

// End tells how an exchange ended. Code "" = as it should.
type End struct {
	Dispatched Dispatched
	Code       string
	Message    string
	Complete   bool
}

// The codes of an End that this package tells apart. All others are faults of the backend.
const (
	endCanceled     = "canceled"
	endAnswerFailed = "answer_failed"
	endLinkLost     = "link_lost"
	endTimeout      = "backend_timeout"
	endMalformed    = "malformed"
	endBadCall      = "bad_call"
)
