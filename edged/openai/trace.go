package openai

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"iop/fsm"
	"iop/proto/spans"
)

// traced is what an exchange has of its trace; nothing, if it is not recorded:
//
//	POST /v1/chat/completions ─┬─ admit      until the log has decided: granted, queued, refused
//	                           ├─ wait       in the queue
//	                           ├─ dispatch   at a node, which goes on with the trace
//	                           └─ admit …    once more for each provider that did not run it
type traced struct {
	root   spans.Span
	id     string // of the trace
	passOn string // the traceparent for the backend, if nothing is recorded here

	step     spans.Span // admit or wait, whichever goes on
	waits    bool       // it is wait
	dispatch spans.Span
	attempt  int
}

// Place is where a request stands in the log and in the queue.
type Place struct {
	EnqueuedIndex, GrantedIndex uint64 // 0 = it was not
	Position                    int
	Why                         string // it waits: the reasons of its candidates, few and of a fixed set
}

// startTrace begins the request's trace, if it is to be recorded.
func (x *exchange) startTrace(h http.Header) {
	t := &x.trace
	if x.s.o.Tracer == nil { // what the client sent travels with his headers, as his word and not as ours
		return
	}
	parent := first(h["Traceparent"])
	if spans.StateOf(parent, h["Tracestate"]) == nil {
		delete(h, "Tracestate")
	}
	if x.inBackground() {
		t.root, t.passOn = x.s.o.Tracer.StartLinked("background "+x.route.template(), spans.Internal, x.began, parent)
		delete(h, "Tracestate")
	} else {
		t.root, t.passOn = x.s.o.Tracer.Start("POST "+x.route.template(), spans.Server, x.began, parent, h["Tracestate"])
	}
	t.id = t.root.TraceID()
}

// template is the route without what a client may choose.
func (to *route) template() string {
	if to.capability != "" {
		return "/v1/{" + to.capability + "}"
	}
	return to.path
}

// operation is the word for the route in OpenTelemetry's conventions for generative AI.
func (to *route) operation() string {
	switch {
	case to.needs == fsm.NeedCompletions:
		return "text_completion"
	case to.needs == fsm.NeedEmbeddings:
		return "embeddings"
	case to.capability != "":
		return to.capability
	}
	return "chat"
}

// traceparent is what the backend is told.
func (t *traced) traceparent() string {
	if t.dispatch.Recording() {
		return t.dispatch.Traceparent()
	}
	return t.passOn
}

// keepTrace puts into the header of a background response whose trace made it.
func (t *traced) keepTrace(h http.Header) {
	if t.root.Recording() {
		h.Set("Traceparent", t.root.Traceparent())
	} else if t.passOn != "" {
		h.Set("Traceparent", t.passOn)
	}
}

// asks begins the step in which the log decides. again: after a run that did not take place.
func (t *traced) asks(again bool) {
	if t.root.Recording() {
		t.step, t.waits = t.root.Child("admit", spans.Internal, time.Now()), false
		if again {
			t.step.Set(spans.Flag("iop.requeue", true))
		}
	}
}

// traceQueued ends that step and begins the wait; ticks say nothing new.
func (x *exchange) traceQueued(position int) {
	t := &x.trace
	if !t.root.Recording() || t.waits {
		return
	}
	now := time.Now()
	p := x.place()
	if position == 0 {
		position = p.Position
	}
	t.step.Set(spans.Text("iop.outcome", "queued"), spans.Int("iop.commit.index", p.EnqueuedIndex))
	t.step.End(now)
	t.step, t.waits = t.root.Child("wait", spans.Internal, now, spans.Int("iop.queue.position", position), spans.Text("iop.queue.reason", p.Why)), true
}

// traceDispatch ends what came before a dispatch and begins it.
func (x *exchange) traceDispatch(g *fsm.Grant) {
	t := &x.trace
	if !t.root.Recording() {
		return
	}
	now := time.Now()
	t.step.Set(spans.Text("iop.outcome", "granted"), spans.Int("iop.commit.index", x.place().GrantedIndex), spans.Int("iop.lease", uint64(g.Lease)))
	t.step.End(now)
	t.step, t.waits = spans.Span{}, false
	t.attempt++
	t.dispatch = t.root.Child("dispatch", spans.Client, now,
		spans.Text("iop.provider", string(g.Provider)), spans.Text("iop.node", string(g.Node)), spans.Int("iop.lease", uint64(g.Lease)),
		spans.Int("iop.generation", uint64(g.Generation)), spans.Int("iop.attempt", t.attempt), spans.Text("iop.request", x.shown),
		spans.Text("gen_ai.request.model", g.Served))
}

// traceHead notes the first byte of an answer.
func (x *exchange) traceHead(status int) {
	if t := &x.trace; t.dispatch.Recording() {
		t.dispatch.Event("first byte", time.Now(), spans.Int("http.response.status_code", status))
	}
}

// traceEnded ends a dispatch.
func (x *exchange) traceEnded(e *End, why fsm.Reason, requeue bool) {
	t := &x.trace
	if !t.dispatch.Recording() {
		return
	}
	now := time.Now()
	t.dispatch.Set(spans.Text("iop.dispatched", e.Dispatched.header()), spans.Text("iop.release.reason", why.String()), spans.Flag("iop.requeue", requeue))
	if e.Code != "" && (why != fsm.ReasonCanceled || requeue) {
		t.dispatch.Fail(known(e.Code))
	}
	t.dispatch.End(now)
	t.dispatch = spans.Span{}
	if requeue {
		t.asks(true)
	}
}

// known is the code of an end, if it is one of the fixed set that the documents name.
func known(code string) string {
	switch code {
	case "connect_failed", "busy", "concurrency", "backend_broke", endTimeout, endLinkLost, endCanceled, endAnswerFailed, endMalformed, endBadCall,
		"no_connection", "misconfigured", "unsupported":
		return code
	}
	return "other"
}

// place asks where the request stands.
func (x *exchange) place() Place {
	if x.s.o.Place == nil {
		return Place{}
	}
	return x.s.o.Place(fsm.RequestID(x.id))
}

// endTrace ends the trace with all that is known.
func (x *exchange) endTrace(aborted bool) {
	t := &x.trace
	if !t.root.Recording() {
		return
	}
	now, a := time.Now(), &x.answer
	outcome := x.outcome().String()
	if t.step.Recording() { // it ended while it was to be admitted, or waited
		t.step.Set(spans.Text("iop.outcome", outcome))
		if x.fail != nil && x.err == nil {
			t.step.Fail(x.fail.word())
		}
		t.step.End(now)
	}
	t.root.Set(
		spans.Text("iop.request", x.shown), spans.Text("iop.outcome", outcome), spans.Text("http.request.method", http.MethodPost),
		spans.Text("http.route", x.route.template()), spans.Text("gen_ai.operation.name", x.route.operation()), spans.Flag("gen_ai.request.stream", x.streams),
	)
	x.traceRequest()
	switch {
	case x.err != nil:
		t.root.Event("client left", now)
		t.root.Set(spans.Text("error.type", endCanceled))
	case x.fail != nil && (x.fail.status >= http.StatusInternalServerError || x.fail.status == http.StatusTooManyRequests || aborted):
		t.root.Fail(x.fail.word())
	case x.fail != nil:
		t.root.Set(spans.Text("error.type", x.fail.word()))
	case aborted:
		t.root.Fail("broken")
	case a.status >= http.StatusInternalServerError:
		t.root.Fail("backend_refused")
	}
	if aborted {
		t.root.Set(spans.Flag("iop.broken_off", true))
	}
	t.root.End(now)
}

// traceRequest says what was asked for, who asked, and what it took.
func (x *exchange) traceRequest() {
	t, a := &x.trace, &x.answer
	if x.model != nil { // a name that the configuration has
		t.root.Set(spans.Text("gen_ai.request.model", string(x.model.id)), spans.Text("iop.class", x.class))
	}
	if x.who.principal != "" {
		t.root.Set(spans.Text("iop.principal_ref", x.who.principal))
	}
	if g := &x.out.Grant; g.Lease != 0 {
		t.root.Set(spans.Text("iop.provider", string(g.Provider)), spans.Text("iop.node", string(g.Node)), spans.Text("gen_ai.response.model", g.Served))
	}
	if a.firstByte > 0 {
		t.root.Event("first byte", x.began.Add(a.firstByte))
		t.root.Set(spans.Seconds("gen_ai.response.time_to_first_chunk", a.firstByte))
	}
	status := a.status
	if x.fail != nil && x.err == nil && !a.live && !a.early {
		status = x.fail.status
	}
	if status != 0 {
		t.root.Set(spans.Int("http.response.status_code", status))
	}
	if u := x.Used(); u.Told {
		t.root.Set(spans.Int("gen_ai.usage.input_tokens", u.Prompt), spans.Int("gen_ai.usage.output_tokens", u.Completion))
	}
}

// word is the failure's code, if it is ours: a backend may have told the client one of its own.
func (f *failure) word() string {
	if f.outcome == kindProvider.outcome && f.code != kindProviderLate.code {
		return kindProvider.code
	}
	return f.code
}

// log writes a line about the request, with its id and that of its trace.
func (x *exchange) log(level slog.Level, message string, args ...any) {
	if !x.s.o.Logger.Enabled(context.Background(), level) {
		return
	}
	about := []any{"request", x.shown}
	if x.trace.id != "" {
		about = append(about, "trace_id", x.trace.id)
	}
	x.s.o.Logger.Log(context.Background(), level, message, append(about, args...)...)
}
