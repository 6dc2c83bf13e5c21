package noded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"iop/configs"
	"iop/noded/adapter"
	"iop/noded/edgelink"
	"iop/proto/spans"
)

// stopTraces bounds how long the last spans may take to reach their collector at a stop.
const stopTraces = 3 * time.Second

// newTracer builds what records runs; nil if nothing is to be recorded.
func newTracer(c *configs.NodeSelf, version string, log *slog.Logger) (*spans.Tracer, error) {
	t := &c.Traces
	if t.Endpoint == "" {
		return nil, nil
	}
	tracer, err := spans.New(spans.Options{
		Endpoint: t.Endpoint, Protocol: t.Protocol, Headers: t.RevealHeaders(), CA: t.CA,
		Ratio: t.SampleRatio, AskedPerSecond: t.ClientSampledPerSecond,
		Service: cmp.Or(t.ServiceName, "iop-node"), Instance: c.ID, Version: version, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("node.traces: %w", err)
	}
	return tracer, nil
}

// closeTracer exports what is left of a life, as far as its collector takes it.
func (d *Daemon) closeTracer() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTraces)
	defer cancel()
	if err := d.hands.tracer.Close(ctx); err != nil {
		d.log.Warn("the last spans were not exported", "error", err)
	}
}

// traced is what a run has of its request's trace: a span of the node, and one of the backend call below it.
type traced struct {
	began   time.Time
	node    spans.Span
	backend spans.Span
	passOn  string // the traceparent for the backend, if nothing is recorded here
}

// startTrace begins the node's span, if it is to be recorded.
func (h *hands) startTrace(r *edgelink.Run) (t traced) {
	t.began = time.Now()
	if h.tracer == nil {
		t.passOn = r.Trace
		return t
	}
	parent, start := r.Trace, h.tracer.Follow
	if parent == "" { // the edge has no traces: what there is, is the client's
		parent, start = r.Header.Get("Traceparent"), h.tracer.Start
	}
	if spans.StateOf(parent, r.Header["Tracestate"]) == nil {
		delete(r.Header, "Tracestate")
	}
	t.node, t.passOn = start("node", spans.Server, t.began, parent, r.Header["Tracestate"])
	if t.node.Recording() {
		t.node.Set(
			spans.Text("iop.request", r.Request), spans.Text("iop.provider", r.Provider), spans.Text("iop.adapter", r.Adapter),
			spans.Int("iop.lease", r.Lease), spans.Int("iop.generation", r.Generation), spans.Int("iop.run", r.Run),
		)
	}
	return t
}

// gate notes what the gate said.
func (t *traced) gate(refused bool, capacity, inFlight int) {
	if t.node.Recording() {
		t.node.Event("gate", time.Now(), spans.Flag("iop.gate.refused", refused), spans.Int("iop.capacity", capacity), spans.Int("iop.in_flight", inFlight))
	}
}

// call begins the span of the backend call.
func (t *traced) call(r *edgelink.Run, providerType string) {
	if t.node.Recording() {
		t.backend = t.node.Child("backend", spans.Client, time.Now(),
			spans.Text("gen_ai.request.model", r.Served), spans.Text("gen_ai.provider.name", providerType), spans.Text("iop.request", r.Request))
	}
}

// traceparent is what the backend is told.
func (t *traced) traceparent() string {
	if t.backend.Recording() {
		return t.backend.Traceparent()
	}
	return t.passOn
}

// called ends the span of the backend call.
func (t *traced) called(end *adapter.End, n *noting) {
	if !t.backend.Recording() {
		return
	}
	if n.status != 0 {
		t.backend.Event("first byte", n.at)
		t.backend.Set(spans.Int("http.response.status_code", n.status))
	}
	t.backend.Set(spans.Text("iop.dispatched", end.Dispatched.String()))
	switch {
	case end.Code != adapter.CodeOK && end.Code != adapter.CodeCanceled:
		t.backend.Fail(end.Code)
	case end.Code == adapter.CodeCanceled:
		t.backend.Set(spans.Text("error.type", end.Code))
	case n.status >= 400:
		t.backend.Fail(fmt.Sprint(n.status))
	}
	t.backend.End(time.Now())
}

// endRun ends the node's span, and tells a log that asks for it what became of the run.
func (h *hands) endRun(r *edgelink.Run, t *traced, end *edgelink.End) {
	if t.node.Recording() {
		t.node.Set(spans.Text("iop.dispatched", end.Dispatched.String()))
		switch end.Code {
		case "":
		case adapter.CodeCanceled:
			t.node.Set(spans.Text("error.type", end.Code))
		default:
			t.node.Fail(end.Code)
		}
		t.node.End(time.Now())
	}
	if !h.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	h.about(r, t).Debug("run", "provider", r.Provider, "adapter", r.Adapter, "lease", r.Lease, "generation", r.Generation,
		"dispatched", end.Dispatched.String(), "code", end.Code, "took", time.Since(t.began))
}

// about is the log for lines about a run.
func (h *hands) about(r *edgelink.Run, t *traced) *slog.Logger {
	log := h.log.With("request", r.Request)
	if id := t.node.TraceID(); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}
