package spans

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options say where spans go. Environment variables (OTEL_*) change nothing of them: the configuration is what is shown,
// compared and checked.
type Options struct {
	Endpoint string            // http(s)://host:port of the collector, with a path for HTTP if it is not /v1/traces
	Protocol string            // ProtocolGRPC or ProtocolHTTP
	Headers  map[string]string // sent with each export; their values are secrets
	CA       string            // a PEM file with the authorities of the collector's certificate; "" = the system's
	Ratio    float64           // of the requests that bring no decision with them, from 0 to 1
	// AskedPerSecond bounds how many requests a second are recorded because their client asks for it, beside those of Ratio;
	// 0 or less = none.
	AskedPerSecond int

	Service  string // service.name
	Instance string // service.instance.id
	Version  string // service.version
	Logger   *slog.Logger

	// Zero values take the defaults named here.
	QueueMax int           // spans that wait to be exported: 8192
	Every    time.Duration // longest wait of a span for others to go with: 2 s
	Timeout  time.Duration // of one export: 10 s
}

// Protocols of an endpoint.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http"
)

// Bounds of one span.
const (
	valueMax      = 256 // bytes of a text
	attributesMax = 64
	eventsMax     = 32
	linksMax      = 4
)

// Tracer decides which requests are recorded and exports their spans. nil is one that is off.
type Tracer struct {
	provider  *sdk.TracerProvider
	tracer    trace.Tracer
	queue     *queue
	threshold uint64 // a trace is recorded if the low 63 bits of its id are below
	asked     *allowance
}

// New builds a tracer; nothing is dialled before the first span. The error is about the options.
func New(o Options) (*Tracer, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orSpan(&o.Every, 2*time.Second)
	orSpan(&o.Timeout, 10*time.Second)
	if o.QueueMax <= 0 {
		o.QueueMax = 8192
	}
	exporter, err := newExporter(&o)
	if err != nil {
		return nil, err
	}
	q := newQueue(exporter, &o)
	p := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // Start has decided
		sdk.WithIDGenerator(ids{}),
		sdk.WithSpanProcessor(q),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: valueMax, AttributeCountLimit: attributesMax, EventCountLimit: eventsMax, LinkCountLimit: linksMax,
			AttributePerEventCountLimit: attributesMax, AttributePerLinkCountLimit: attributesMax,
		}),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.Instance),
			attribute.String("service.version", o.Version),
		)),
	)
	return &Tracer{provider: p, tracer: p.Tracer("iop"), queue: q, threshold: thresholdOf(o.Ratio), asked: newAllowance(o.AskedPerSecond)}, nil
}

func orSpan(d *time.Duration, def time.Duration) {
	if *d <= 0 {
		*d = def
	}
}

// thresholdOf is the bound that a share of all trace ids is below.
func thresholdOf(ratio float64) uint64 {
	switch {
	case ratio >= 1:
		return math.MaxUint64
	case ratio > 0:
		return uint64(ratio * (1 << 63))
	}
	return 0
}

// keeps decides about a trace by its id alone, so that whoever asks gets the same answer.
func (t *Tracer) keeps(id [16]byte) bool {
	return binary.BigEndian.Uint64(id[8:])>>1 < t.threshold
}

// Start begins the first span of a client's request in this process. parent is the traceparent that he sent and state the
// tracestate. That he does not want it recorded is followed; that he does, as far as the allowance goes, and else the ratio
// decides as if he had said nothing: he may be anybody. His trace goes on in any case. A request that is not recorded gets
// the zero Span, and what to pass on: a traceparent that says so.
func (t *Tracer) Start(name string, k Kind, at time.Time, parent string, state []string) (s Span, passOn string) {
	if t == nil {
		return Span{}, parent
	}
	came, ok := Parse(parent)
	switch {
	case !ok:
		return t.startNew(name, k, at)
	case !came.Sampled():
		return Span{}, parent
	case t.keeps(newTraceID()) || t.asked.take(at): // not by his id: he may have picked it
		return t.within(came, name, k, at, state), ""
	}
	return Span{}, Context{Trace: came.Trace, Span: newSpanID()}.String() // W3C: who changes the flag names himself
}

// Follow is Start for a decision of ours: another process has decided about the request whose parent this is.
func (t *Tracer) Follow(name string, k Kind, at time.Time, parent string, state []string) (s Span, passOn string) {
	came, ok := Parse(parent)
	if t == nil || !ok || !came.Sampled() {
		return t.Start(name, k, at, parent, state)
	}
	return t.within(came, name, k, at, state), ""
}

func (t *Tracer) startNew(name string, k Kind, at time.Time) (Span, string) {
	id := newTraceID()
	if !t.keeps(id) {
		return Span{}, Context{Trace: id, Span: newSpanID()}.String()
	}
	return t.begin(context.WithValue(context.Background(), traceKey{}, id), name, k, at), ""
}

func (t *Tracer) within(came Context, name string, k Kind, at time.Time, state []string) Span {
	return t.begin(trace.ContextWithRemoteSpanContext(context.Background(), remote(came, state)), name, k, at)
}

// StartLinked begins a new trace that came of another one of ours, which has ended or goes on elsewhere. What was decided of
// that holds for this.
func (t *Tracer) StartLinked(name string, k Kind, at time.Time, cause string) (s Span, passOn string) {
	came, ok := Parse(cause)
	if t == nil || !ok {
		return t.Start(name, k, at, cause, nil)
	}
	if !came.Sampled() {
		return Span{}, cause
	}
	return t.begin(context.Background(), name, k, at, trace.WithLinks(trace.Link{SpanContext: remote(came, nil)})), ""
}

// StateOf returns the tracestate that goes with a traceparent: none if that is none (W3C Trace Context 4.3).
func StateOf(parent string, state []string) []string {
	if len(state) == 0 {
		return nil
	}
	if _, ok := Parse(parent); !ok {
		return nil
	}
	return state
}

func (t *Tracer) begin(ctx context.Context, name string, k Kind, at time.Time, more ...trace.SpanStartOption) Span {
	_, s := t.tracer.Start(ctx, name, append(more, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKind(k)))...)
	return Span{of: s, t: t}
}

func remote(c Context, state []string) trace.SpanContext {
	config := trace.SpanContextConfig{TraceID: c.Trace, SpanID: c.Span, TraceFlags: trace.TraceFlags(c.Flags), Remote: true}
	if s := joinState(state); s != "" {
		if parsed, err := trace.ParseTraceState(s); err == nil { // else it goes without
			config.TraceState = parsed
		}
	}
	return trace.NewSpanContext(config)
}

// Close exports what there is, as long as ctx says, and ends the tracer. Spans that end later are dropped.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

// Counts are the spans since the start.
type Counts struct {
	Exported uint64 // the collector has taken them
	Dropped  uint64 // they found no place in the queue
	Failed   uint64 // the collector did not take them
}

// Counts tells what became of the spans.
func (t *Tracer) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	return Counts{Exported: t.queue.exported.Load(), Dropped: t.queue.dropped.Load(), Failed: t.queue.failed.Load()}
}

type traceKey struct{}

// ids makes ids; that of a trace may be decided upon already.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(traceKey{}).([16]byte); ok {
		return id, newSpanID()
	}
	return newTraceID(), newSpanID()
}

func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

func newTraceID() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) // not 0
	return id
}

func newSpanID() (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
