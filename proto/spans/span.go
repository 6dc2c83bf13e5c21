package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Kind is the part that a span plays between processes.
type Kind int

// The kinds.
const (
	Internal = Kind(trace.SpanKindInternal)
	Server   = Kind(trace.SpanKindServer)
	Client   = Kind(trace.SpanKindClient)
)

// Attr is an attribute.
type Attr = attribute.KeyValue

// Text is an attribute; longer values are cut off after 256 bytes.
func Text(key, value string) Attr { return attribute.String(key, value) }

// Int is an attribute.
func Int[T int | int64 | uint64](key string, value T) Attr { return attribute.Int64(key, int64(value)) }

// Seconds is an attribute.
func Seconds(key string, d time.Duration) Attr { return attribute.Float64(key, d.Seconds()) }

// Flag is an attribute.
func Flag(key string, value bool) Attr { return attribute.Bool(key, value) }

// Span is a piece of a request. The zero value is not recorded, and its methods do nothing. It belongs to one goroutine.
type Span struct {
	of trace.Span
	t  *Tracer
}

// Recording tells whether anything comes of it.
func (s Span) Recording() bool { return s.of != nil }

// Child begins a span below s.
func (s Span) Child(name string, k Kind, at time.Time, attrs ...Attr) Span {
	if s.of == nil {
		return Span{}
	}
	return s.t.begin(trace.ContextWithSpan(context.Background(), s.of), name, k, at, trace.WithAttributes(attrs...))
}

// Set adds attributes.
func (s Span) Set(attrs ...Attr) {
	if s.of != nil {
		s.of.SetAttributes(attrs...)
	}
}

// Event notes a moment.
func (s Span) Event(name string, at time.Time, attrs ...Attr) {
	if s.of != nil {
		s.of.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	}
}

// Fail says that it went wrong: code is a stable word, which becomes error.type.
func (s Span) Fail(code string) {
	if s.of != nil {
		s.of.SetStatus(codes.Error, code)
		s.of.SetAttributes(attribute.String("error.type", code))
	}
}

// End ends it. What is done to it later counts for nothing.
func (s Span) End(at time.Time) {
	if s.of != nil {
		s.of.End(trace.WithTimestamp(at))
	}
}

// Traceparent names it to whoever is called within it; "" if it is not recorded.
func (s Span) Traceparent() string {
	if s.of == nil {
		return ""
	}
	c := s.of.SpanContext()
	return Context{Trace: c.TraceID(), Span: c.SpanID(), Flags: flagSampled}.String()
}

// TraceID is the id of its trace in hexadecimal; "" if it is not recorded.
func (s Span) TraceID() string {
	if s.of == nil {
		return ""
	}
	return s.of.SpanContext().TraceID().String()
}
