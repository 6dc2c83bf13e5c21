package openai

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"iop/edged/openai/respond"
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
	charged   int64  // how large it may be without asking for more of what there is for all bodies
	rewritten []byte // as the provider gets it
	scan      scanner
	model     *model
	name      string // the model's key, as the client wrote it
	plainName bool   // and as it stands in the body, without escapes
	streams   bool   // the client asked for a stream
	form      bool   // the body is a multipart form
	edits     []edit
	added     []*param
	raw       int64  // estimated input tokens, uncorrected
	estimate  string // and corrected, for the header
	class     string // normal, long, for the header
	hides     bool   // the chunk with a stream's usage is not for the client
	hash      hash.Hash

	trace    traced
	resp     *responding // of POST /v1/responses; else nil
	messages *messages   // of POST /v1/messages; else nil

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
	defer x.uncharge()
	x.shown = x.s.answerID(r, x.identify(r))
	if x.fail == nil {
		x.startTrace(r.Header)
	} else {
		x.startTrace(nil) // a stranger does not say what is recorded
	}
	if x.fail == nil {
		x.fail = x.prepare(r)
	}
	if x.fail == nil && x.resp != nil && x.resp.q.Background {
		abort = x.submit(r.Context())
		x.endTrace(abort)
		return abort
	}
	if x.fail == nil {
		x.run(r.Context())
	}
	abort = x.finish()
	x.account()
	x.endTrace(abort)
	return abort
}

// asked is the request as admission must know it.
func (x *exchange) asked() Request {
	q := Request{
		ID: fsm.RequestID(x.id), Model: x.model.id, Needs: x.route.needs,
		InputTokens: x.model.scale.apply(x.raw), Fingerprint: x.fingerprint(),
		Provider: x.model.provider, Served: x.model.served,
		Principal: fsm.PrincipalID(x.who.principal), Token: x.who.token, Metered: x.catalog.CountTokens, Trace: x.trace.id,
	}
	if t := x.catalog.LongThreshold; t > 0 && q.InputTokens >= t {
		q.Class = fsm.ClassLong
	}
	if x.streams && !x.inBackground() {
		q.Tick = x.s.o.QueueKeepalive
	}
	x.class = q.Class.String()
	x.estimate = strconv.FormatInt(q.InputTokens, 10)
	return q
}

// run has the request admitted and answered.
func (x *exchange) run(ctx context.Context) {
	q := x.asked()
	x.cleanHeader()
	x.trace.asks(false)
	switch err := x.runner().Run(ctx, q, x); {
	case err == nil && x.decided():
	case err == nil: // it was to go to another provider, and the client left in that moment
		x.err = errLeft
	case isCanceled(err) && ctx.Err() != nil:
		x.err = err
	case x.inBackground() && errors.Is(err, ErrAgain):
		x.resp.again = true
	default:
		x.refused(err)
	}
}

// decided tells whether the last dispatch left something to tell the client.
func (x *exchange) decided() bool { return x.err != nil || x.fail != nil || x.answer.complete }

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
	f := refusal(err, x.model)
	x.route.undeclared(f)
	a := &x.answer
	if f.code == kindUnavailable.code && a.held.status != 0 {
		a.restore()
		return
	}
	if f.code == kindUnavailable.code && a.held.cause != "" {
		f.message = "No provider took the request; the last one: " + a.held.cause + ". Try again later."
	}
	if f.code == kindInternal.code || f.code == kindStorage.code {
		x.log(slog.LevelError, "request not admitted", "error", err)
	}
	x.fail = f
}

// Queued is called when the request waits, at each Tick from then on, and when it waits anew: it went to a provider that
// did not run it, or this edge lost its session. From the second time on a stream gets comments, since proxies cut
// connections that say nothing; what gets no signs of life keeps its status open however often it is called.
func (x *exchange) Queued(position int) {
	again := x.answer.queued
	x.answer.queued = true
	x.traceQueued(position)
	if again && x.streams && x.s.o.QueueKeepalive > 0 {
		x.keepAlive(position)
	}
}

// Dispatch exchanges the request with the granted provider.
func (x *exchange) Dispatch(ctx context.Context, g fsm.Grant, waited time.Duration) (why fsm.Reason, requeue bool) {
	p := x.catalog.providers[g.Provider]
	if _, ok := x.catalog.providers[g.Provider]; !ok { // it is newer than this request
		p = x.s.catalog.Load().providers[g.Provider]
	}
	x.waited = waited
	x.traceDispatch(&g)
	x.out = Exchange{
		Grant: g, Adapter: p.Adapter, Method: x.r.Method, Path: x.target(), Header: x.r.Header,
		Body: x.bodyFor(g.Served), Trace: x.trace.traceparent(), Request: x.shown,
	}
	if x.provKey != "" && p.OpenAI {
		x.r.Header.Set(x.catalog.ProviderAuth.TargetHeader, x.provKey)
		defer x.r.Header.Del(x.catalog.ProviderAuth.TargetHeader)
	}
	if x.messages != nil {
		if x.fail = x.messages.address(&p, g.Served); x.fail != nil {
			x.traceEnded(&End{Dispatched: DispatchedNo, Code: endBadCall}, fsm.ReasonNotRun, false)
			return fsm.ReasonNotRun, false
		}
	}
	x.answer.begin()
	if x.resp != nil && x.respondAnew(&p) != nil {
		x.err = errLeft
		x.traceEnded(&End{Dispatched: DispatchedNo, Code: endCanceled}, fsm.ReasonCanceled, false)
		return fsm.ReasonCanceled, false
	}
	end := x.s.o.Backend.Exchange(ctx, &x.out, x)
	why, requeue = x.ended(ctx, &end)
	x.traceEnded(&end, why, requeue)
	return why, requeue
}

// target is the request's path and query as they were sent, or what a response is made of.
func (x *exchange) target() string {
	r := x.r
	if x.resp != nil {
		return respond.Path
	}
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
