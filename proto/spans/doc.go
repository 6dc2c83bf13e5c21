// Package spans records what becomes of a request as OpenTelemetry spans and exports them over OTLP.
//
// edged and noded each build one Tracer (or none: nil is a Tracer that is off) and give it to their rooms. A room asks it
// once per request: Start reads the W3C traceparent that came, decides, and returns a Span, whose zero value is a request
// that is not recorded. All methods of a zero Span do nothing, so a room needs no second branch; what costs something to
// put together is guarded with Recording. Times are given, never taken: the rooms know them anyway.
//
// It never blocks a request and never fails one: spans go into a bounded queue, those that find no place there are counted
// and dropped, and a collector that is down is told of in the log once in a while. It knows nothing of leases or prompts;
// what is an attribute is said by the rooms. No other room imports OpenTelemetry.
//
// Where next: context.go (W3C), tracer.go (the decision), span.go (what rooms use), queue.go (the way out), export.go.
package spans
