// Package adapter reaches a node's backends: one Adapter per entry of the configuration's adapters.
//
// noded calls it with a Call that came over the link, and it hands the backend's answer on to an Answer as the bytes
// arrive. NewOpenAI is a raw tunnel to anything that speaks the OpenAI API; the packages below are the adapters of
// backends that do not: ollama, cli, and demo, which is built in. An adapter never counts capacity (package gate does)
// and never retries what a backend may have run. What it reports about a run is strict, because an edge sends a run
// elsewhere on its word: see Dispatched. Start reading at openai.go, then exchange.go.
package adapter

import (
	"context"
	"net/http"
	"time"
)

// Adapter is one way to one backend. Its methods may be called by many goroutines at once.
type Adapter interface {
	// Do runs one call and hands the answer to a. It returns when the run is really over: the backend's connection
	// is finished or closed. When ctx ends the backend is left at once.
	Do(ctx context.Context, c *Call, a Answer) End
	// Probe asks whether the backend answers at all, and with a path whether a GET of it is answered with 2xx.
	// The error says what was wrong.
	Probe(ctx context.Context, path string) error
	// Close drops what is kept for later calls. Calls that still run go on to their end.
	Close()
}

// Call is one request as it goes to the backend. An adapter only reads it.
type Call struct {
	Method   string
	Path     string      // request target of the gateway, query included: /v1/chat/completions
	Header   http.Header // canonical keys; hop-by-hop ones are not passed on
	Body     []byte
	Deadline time.Time // the run is given up then; zero is none
	Type     string    // the provider's type, vllm for one: what its answers mean
	Window   int64     // context_window_tokens of the provider; 0 if it states none
}

// Answer takes a backend's answer. Both methods flush at once, or soon (see Patient). An error means that nobody reads any more: the run is
// given up. They are called by one goroutine, Head once and first.
type Answer interface {
	Head(status int, h http.Header) error
	// Data takes the next bytes of the body. p is valid only during the call.
	Data(p []byte) error
}

// Patient is an Answer that can wait with sending: what comes in one go then goes in one go.
type Patient interface {
	Answer
	// Later takes the next bytes as Data does, but may keep them (a copy) until Flush, Data or the end of the run.
	Later(p []byte) error
	// Flush sends what was kept. It is called whenever the backend has no more to give at once.
	Flush() error
}

// Dispatched says whether the backend may have run the request.
type Dispatched uint8

const (
	// DispatchedUnknown says that it can't be told, so the run is not repeated.
	DispatchedUnknown Dispatched = iota
	// DispatchedNo says that the backend provably did not run it. Only this lets an edge try another backend.
	DispatchedNo
	// DispatchedYes says that the backend has answered.
	DispatchedYes
)

// String returns unknown, no or yes.
func (d Dispatched) String() string {
	switch d {
	case DispatchedNo:
		return "no"
	case DispatchedYes:
		return "yes"
	default:
		return "unknown"
	}
}

// Codes of an End. The empty code is an answer that was passed on to its orderly end, whatever its status.
const (
	CodeOK             = ""
	CodeConnectFailed  = "connect_failed"  // refused, unreachable, DNS or TLS failure; dispatched no
	CodeBusy           = "busy"            // the backend's type declares this answer as not run; dispatched no; see Held
	CodeBadCall        = "bad_call"        // the call can't be written as an HTTP request; dispatched no
	CodeBackendBroke   = "backend_broke"   // the connection ended before the answer did, or the answer was not HTTP
	CodeBackendTimeout = "backend_timeout" // the deadline passed, or the headers took too long
	CodeCanceled       = "canceled"        // ctx ended
	CodeAnswerFailed   = "answer_failed"   // the Answer took no more
)

// End is how a run ended.
type End struct {
	Dispatched Dispatched
	Code       string
	Message    string // for people: what was being done, and the cause; never a secret
	// Held is the backend's own answer to a run that ended as busy: nothing of it went to the Answer, so that the run
	// can still go elsewhere, and it is there to be passed on if it can't. Nil otherwise.
	Held *Held
}

// Held is a complete small answer that was kept back.
type Held struct {
	Status int
	Header http.Header
	Body   []byte // at most 64 KiB
}
