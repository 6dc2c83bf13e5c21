package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// labelTrace is the one label of an exemplar: the trace's id as W3C writes it.
const labelTrace = "trace_id"

// traceIDLen is the length of a trace's id: 16 bytes in hexadecimal digits.
const traceIDLen = 32

// observe takes a time into a histogram. A trace's id makes it the bucket's exemplar, which only scrapers that speak
// OpenMetrics see; what is no such id is left out, since a request's end must not depend on it. Without one it does not
// allocate.
func observe(o prometheus.Observer, d time.Duration, traceID string) {
	if !isTraceID(traceID) {
		o.Observe(d.Seconds())
		return
	}
	if x, ok := o.(prometheus.ExemplarObserver); ok {
		x.ObserveWithExemplar(d.Seconds(), prometheus.Labels{labelTrace: traceID})
		return
	}
	o.Observe(d.Seconds())
}

func isTraceID(s string) bool {
	if len(s) != traceIDLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
