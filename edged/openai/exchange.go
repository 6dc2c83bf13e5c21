package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"iop/edged/metrics"
	"iop/fsm"
)

// exchange is one inference request and its answer. It is used by one goroutine, and again by later requests.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	route *route
	began time.Time

	catalog *catalog
	who     caller
	id      string // of the request
	shown   string // x-request-id of the answer
	provKey string // the caller's own key for the backend

	body      []byte // as the client sent it
	rewritten []byte // as the provider gets it
	scan      scanner
	model     *model
	name      string // the model's key, as the client wrote it
	plainName bool   // and as it stands in the body, without escapes
	streams   bool   // the client asked for a stream
	edits     []edit
	added     []*param
	raw       int64  // estimated input tokens, uncorrected
	estimate  string // and corrected, for the header
	hash      hash.Hash

	out    Exchange
	waited time.Duration
	answer answer
	err    error    // the client left
	fail   *failure // what the client is to be told
}

// take returns an exchange for a request.
func (s *Server) take(w http.ResponseWriter, r *http.Request, to *route) *exchange {
	x := s.pool.Get().(*exchange)
	x.w, x.r, x.route, x.began, x.catalog = w, r, to, time.Now(), s.catalog.Load()
	return x
}

// putBack keeps an exchange and its small buffers for another request.
func (s *Server) putBack(x *exchange) {
	kept := exchange{
		s: s, body: small(x.body), rewritten: small(x.rewritten), edits: x.edits[:0], added: x.added[:0],
		scan: scanner{members: x.scan.members[:0]}, hash: x.hash,
	}
	kept.answer.keep(&x.answer)
	*x = kept
	s.pool.Put(x)
}

// small returns b emptied, or nothing if it is too large to be kept.
func small(b []byte) []byte {
	if cap(b) > bodyKeptBytes {
		return nil
	}
	return b[:0]
}

// serve answers the request; abort = the answer broke off and the client's connection must be broken too.
func (x *exchange) serve(r *http.Request) (abort bool) {
	m := x.s.o.Metrics
	m.Opened()
	defer m.Closed()
	x.shown = x.s.answerID(r, x.identify(r))
	if x.fail == nil {
		x.fail = x.prepare(r)
	}
	if x.fail == nil {
		x.run(r.Context())
	}
	abort = x.finish()
	x.account()
	return abort
}

// identify finds out who calls, and gives the request its id: from the Idempotency-Key, or a new one.
func (x *exchange) identify(r *http.Request) (id string) {
	who, ok := x.catalog.identify(r.Header)
	if !ok {
		x.fail = badKey(r.Header)
		return ""
	}
	x.who = who
	if v := r.Header["Idempotency-Key"]; len(v) > 0 && v[0] != "" {
		sum := sha256.Sum256([]byte(who.principal + "\x00" + v[0]))
		x.id = "idem_" + hex.EncodeToString(sum[:])
	} else {
		x.id = x.s.newID()
	}
	return x.id
}

// prepare reads the request and looks through it.
func (x *exchange) prepare(r *http.Request) *failure {
	if v := r.Header["Content-Encoding"]; len(v) > 0 && v[0] != "" && !strings.EqualFold(v[0], "identity") {
		return &failure{kind: kindEncoding, message: "The body is encoded as " + shown(v[0]) + ". Send it without Content-Encoding."}
	}
	if f := x.readBody(r); f != nil {
		return f
	}
	if err := x.scan.scan(x.body); err != nil {
		return badJSON(x.body, err)
	}
	if f := x.readModel(); f != nil {
		return f
	}
	var ok bool
	if x.provKey, ok = x.catalog.ProviderAuth.providerKey(r.Header); !ok {
		return &failure{kind: kindProviderKey, message: "Your own key for the provider is missing. Send it in the header " + x.catalog.ProviderAuth.FromHeader + "."}
	}
	x.plan()
	x.raw = x.scan.text.tokens()
	return nil
}

func badJSON(body []byte, err error) *failure {
	f := &failure{kind: kindJSON, message: "The body can't be read: " + err.Error() + "."}
	if len(body) == 0 {
		f.message = "The body is empty. Send a JSON object with at least \"model\"."
	}
	if errors.Is(err, errTooMany) || errors.Is(err, errNotObject) {
		f.kind = kindMalformed
	}
	return f
}

// readModel finds the model and whether a stream is asked for. Of keys that occur twice the last counts.
func (x *exchange) readModel() *failure {
	var value []byte
	x.streams = false
	for _, m := range x.scan.members {
		switch m.key {
		case keyModel:
			value = x.body[m.from:m.to]
		case keyStream:
			x.streams = string(x.body[m.from:m.to]) == "true"
		}
	}
	if len(value) == 0 || value[0] != '"' {
		return &failure{kind: kindMalformed, param: "model", message: "The body must name a \"model\" as a string. GET /v1/models lists the models there are."}
	}
	inner := value[1 : len(value)-1]
	x.plainName = true
	x.model = x.catalog.models[string(inner)]
	if x.model == nil {
		x.name = unquote(value)
		x.plainName = x.name == string(inner)
		x.model = x.catalog.models[x.name]
	}
	if x.model == nil {
		return noModel(x.name)
	}
	x.name = string(x.model.id)
	return nil
}

// run has the request admitted and answered.
func (x *exchange) run(ctx context.Context) {
	q := Request{
		ID: fsm.RequestID(x.id), Model: x.model.id, Needs: x.route.needs,
		InputTokens: x.model.scale.apply(x.raw), Fingerprint: x.fingerprint(),
	}
	if t := x.catalog.LongThreshold; t > 0 && q.InputTokens >= t {
		q.Class = fsm.ClassLong
	}
	if x.streams {
		q.Tick = x.s.o.QueueKeepalive
	}
	x.estimate = strconv.FormatInt(q.InputTokens, 10)
	x.cleanHeader()
	switch err := x.s.o.Runner.Run(ctx, q, x); {
	case err == nil:
	case isCanceled(err) && ctx.Err() != nil:
		x.err = err
	default:
		x.refused(err)
	}
}

// fingerprint is what a retry without an Idempotency-Key is recognised by.
func (x *exchange) fingerprint() fsm.Fingerprint {
	if x.hash == nil {
		x.hash = sha256.New()
	}
	x.hash.Reset()
	b := append(append(append(append(x.rewritten[:0], x.who.principal...), 0), x.route.path...), 0)
	_, _ = x.hash.Write(b) // it never fails
	_, _ = x.hash.Write(x.body)
	x.rewritten = x.hash.Sum(b[:0])
	return fsm.Fingerprint(x.rewritten[:len(fsm.Fingerprint{})])
}

// refused notes the Runner's error, or the answer of the last backend that did not run it if nobody else could.
func (x *exchange) refused(err error) {
	f := refusal(err)
	a := &x.answer
	if f.code == kindUnavailable.code && a.held.status != 0 {
		a.restore()
		return
	}
	if f.code == kindUnavailable.code && a.held.cause != "" {
		f.message = "No provider took the request; the last one: " + a.held.cause + ". Try again later."
	}
	if f.code == kindInternal.code || f.code == kindStorage.code {
		x.s.o.Logger.Error("request not admitted", "request", x.shown, "error", err)
	}
	x.fail = f
}

// Queued is called when the request waits, and then again and again. From the second time on a stream gets comments,
// since proxies cut connections that say nothing.
func (x *exchange) Queued(position int) {
	if !x.answer.queued {
		x.answer.queued = true
		return
	}
	x.keepAlive(position)
}

// Dispatch exchanges the request with the granted provider.
func (x *exchange) Dispatch(ctx context.Context, g fsm.Grant, waited time.Duration) (why fsm.Reason, requeue bool) {
	p := x.catalog.providers[g.Provider]
	if _, ok := x.catalog.providers[g.Provider]; !ok { // it is newer than this request
		p = x.s.catalog.Load().providers[g.Provider]
	}
	x.waited = waited
	x.out = Exchange{
		Grant: g, Adapter: p.Adapter, Method: x.r.Method, Path: target(x.r), Header: x.r.Header,
		Body: x.bodyFor(g.Served), Trace: first(x.r.Header["Traceparent"]),
	}
	if x.provKey != "" && p.OpenAI {
		x.r.Header.Set(x.catalog.ProviderAuth.TargetHeader, x.provKey)
		defer x.r.Header.Del(x.catalog.ProviderAuth.TargetHeader)
	}
	x.answer.begin()
	end := x.s.o.Backend.Exchange(ctx, &x.out, x)
	return x.ended(ctx, &end)
}

// target is the request's path and query as they were sent.
func target(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.RequestURI()
}

func first(v []string) string {
	if len(v) > 0 {
		return v[0]
	}
	return ""
}

// ended decides what an end means for the lease and for the client.
func (x *exchange) ended(ctx context.Context, e *End) (why fsm.Reason, requeue bool) {
	a := &x.answer
	a.dispatched = e.Dispatched
	switch {
	case e.Code == "" && e.Complete && a.status != 0:
		a.complete, a.dispatched = true, DispatchedYes
		return fsm.ReasonDone, false
	case ctx.Err() != nil || a.writeErr != nil:
		x.err = errLeft
		return fsm.ReasonCanceled, false
	case e.Dispatched == DispatchedNo && (e.Code == endBadCall || e.Code == endMalformed):
		x.fail = &failure{kind: kindMalformed, dispatched: DispatchedNo, message: "The request can't be passed on: " + e.Message + "."}
		return fsm.ReasonNotRun, false
	case e.Dispatched == DispatchedNo && !a.committed():
		a.hold(cause(e))
		return fsm.ReasonNotRun, true
	}
	x.fail = &failure{kind: kindProvider, dispatched: e.Dispatched, message: "The provider failed during the request (" + cause(e) + "). Try again."}
	why = fsm.ReasonBackendError
	switch e.Code {
	case endTimeout:
		x.fail.kind, why = kindProviderLate, fsm.ReasonTimeout
	case endLinkLost:
		why = fsm.ReasonLinkLost
	case endCanceled:
		why = fsm.ReasonCanceled
	}
	x.s.o.Logger.Warn("run failed", "request", x.shown, "provider", x.out.Grant.Provider, "node", x.out.Grant.Node,
		"code", e.Code, "dispatched", e.Dispatched.header(), "cause", e.Message)
	return why, false
}

// cause tells an end in words.
func cause(e *End) string {
	code := e.Code
	if code == "" {
		code = "incomplete answer"
	}
	if e.Message == "" {
		return code
	}
	return code + ": " + e.Message
}

// account counts the request.
func (x *exchange) account() {
	m, a := x.s.o.Metrics, &x.answer
	provider := string(x.out.Grant.Provider)
	m.Route(x.name, provider).Ended(x.outcome())
	by := m.Model(x.name)
	by.Duration(time.Since(x.began))
	if a.firstByte > 0 {
		by.FirstByte(a.firstByte)
	}
	if c := a.reader.count; c.in > 0 || c.out > 0 {
		if x.catalog.CountTokens {
			m.Usage(metrics.UsageKey{Principal: x.who.principal, Token: x.who.token, Model: x.name, Provider: provider}).Add(c.in, c.out)
		}
		x.model.scale.learn(x.raw, c.in)
	}
	if x.s.o.Logger.Enabled(context.Background(), slog.LevelDebug) {
		x.s.o.Logger.Debug("request", "request", x.shown, "admission", x.id, "route", x.route.path, "model", x.name, "provider", provider,
			"principal", x.who.principal, "token", x.who.token, "outcome", x.outcome().String(), "status", a.status,
			"waited", x.waited, "took", time.Since(x.began), "in", a.reader.count.in, "out", a.reader.count.out)
	}
}

func (x *exchange) outcome() metrics.Outcome {
	switch {
	case x.err != nil:
		return metrics.OutcomeCanceled
	case x.fail != nil:
		return x.fail.outcome
	case x.answer.status >= http.StatusBadRequest:
		return metrics.OutcomeBackendRefused
	}
	return metrics.OutcomeOK
}
