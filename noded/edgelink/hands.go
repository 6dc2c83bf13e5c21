package edgelink

import (
	"context"
	"net/http"
	"time"

	"iop/proto/nodepb"
)

// Hands does what an edge asks of a node.
type Hands interface {
	// Configure builds what p says, or returns why it can't; then the old configuration stays. Calls of one link come
	// one at a time; links to several edges may call at the same time, with equal payloads for equal revisions.
	Configure(ctx context.Context, revision uint64, p *nodepb.NodeConfigPayload) error
	// Run runs r at a backend and returns when the backend call is really over. ctx ends when the run is canceled, its
	// connection breaks, its deadline passes or its link is lost. r and its Body are valid until Run returns.
	Run(ctx context.Context, r *Run, a Answer) End
}

// Run is one request to a backend.
type Run struct {
	Run, Lease, Generation uint64
	Provider, Adapter      string
	Served                 string // the model's name at the provider
	Kind                   string // nodepb.KindTunnel or nodepb.KindRun
	Method                 string
	Path                   string // with the query, percent-encoding kept
	Header                 http.Header
	Body                   []byte
	Deadline               time.Time // by this node's clock; zero = none
	Trace                  string    // W3C traceparent, as the edge decided; empty: it has no traces, and a client's own is in Header
	Request                string    // the request's id as its client knows it, for logs
}

// Answer takes a backend's answer. Use it from one goroutine, and not after Run has returned.
type Answer interface {
	// Head takes status and headers, once, before any Data. h is not kept.
	Head(status int, h http.Header) error
	// Data takes a piece of the body and sends it at once. It blocks while the client does not read. p is not kept.
	Data(p []byte) error
}

// Dispatched tells whether the backend ran the request.
type Dispatched uint8

// What is known of it. DispatchedNo is promised only if the backend provably did not run it.
const (
	DispatchedUnknown Dispatched = iota
	DispatchedNo
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

// End tells how a run ended.
type End struct {
	Dispatched Dispatched
	Code       string // "" = as it should; else a stable code like connect_failed, concurrency, busy, backend_broke
	Message    string // for people
}

// CodeCanceled is the code of a run that was canceled before it reached Hands.
const CodeCanceled = "canceled"
