package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"iop/edged/openai/respond"
	"iop/fsm"
)

// responding is what an exchange has more when it answers POST /v1/responses. The exchange is the same as that of a chat:
// the backend is asked for chat, and what it answers is made into a response and its events on the way to the client.
type responding struct {
	q        *respond.Request
	run      *respond.Run // of the present dispatch
	original []byte       // the request as the client sent it
	created  time.Time
	opened   bool // the first events are out
	active   bool // the backend's answer is being made into a response
	sequence int64
	out      []byte
	history  []json.RawMessage // the conversation before
	relays   bool              // the present provider has a Responses API of its own that is trusted
	job      *job              // of a background response, while it runs
	again    bool              // its run was lost or did not take place: it will run again, and nothing is said of this one
}

// readResponse reads the request for a response and puts the chat request that asks for the same in its place.
func (x *exchange) readResponse(ctx context.Context) *failure {
	p := x.resp
	if p == nil {
		p = &responding{created: time.Now(), original: x.body}
		x.resp = p
	}
	q, problem := respond.Read(x.body, x.newResponseID)
	if problem != nil {
		return malformed(problem)
	}
	p.q = q
	var f *failure
	if p.history, f = x.conversation(ctx, q); f != nil {
		return f
	}
	chat, problem := q.Chat(p.history, q.Stream || q.Background)
	if problem != nil {
		return malformed(problem)
	}
	if limit := x.s.o.MaxBodyBytes; int64(len(chat)) > limit {
		return tooLarge(limit)
	}
	if !x.charge(max(x.charged, bodyFirstBytes) + int64(len(chat))) {
		return tooManyBodies()
	}
	x.body = chat
	if err := x.scan.scan(x.body); err != nil {
		return badJSON(x.body, err)
	}
	if f := x.readModel(); f != nil {
		return f
	}
	x.streams = q.Stream || q.Background
	p.run = respond.NewRun(q, x.name, p.created.Unix())
	return nil
}

func malformed(p *respond.Problem) *failure {
	f := &failure{kind: kindMalformed, param: p.Param, message: p.Message, dispatched: DispatchedNo}
	f.code = p.Code
	return f
}

// newResponseID is the id of the response: for one that runs in the background that of its Idempotency-Key, so that a
// retry gets the same response.
func (x *exchange) newResponseID(background bool) string {
	switch key := first(x.r.Header["Idempotency-Key"]); {
	case x.resp.job != nil:
		return x.resp.job.id
	case background && key != "":
		return responseIDOf(x.who.principal, key)
	}
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // it never fails
	return "resp_" + hex.EncodeToString(raw[:])
}

// responseIDOf is the id of the background response that an Idempotency-Key stands for.
func responseIDOf(principal, key string) string {
	sum := sha256.Sum256([]byte("response\x00" + principal + "\x00" + key))
	return "resp_" + hex.EncodeToString(sum[:16])
}

// respondAnew prepares for another backend's answer: what an earlier one has begun was not run and counts for nothing.
func (x *exchange) respondAnew(to *Provider) error {
	p := x.resp
	if p.relays = to.Can&fsm.NeedResponses != 0; p.relays {
		x.out.Path, x.out.Body = respond.RelayPath, p.q.Relay(p.history, x.out.Body, x.streams)
	}
	p.run, p.active = respond.NewRun(p.q, x.name, p.created.Unix()), false
	if p.job == nil {
		return nil
	}
	return x.deliver([]respond.Event{p.run.Waiting()}, respond.InProgress)
}

// runner leads the request through admission.
func (x *exchange) runner() Runner {
	if x.inBackground() {
		return x.resp.job.runner
	}
	return x.s.o.Runner
}

// headResponse takes the head of a backend's answer. false: it is an error, and passed on as such.
func (x *exchange) headResponse(status int, events bool) bool {
	a, p := &x.answer, x.resp
	if status >= http.StatusMultipleChoices {
		return false
	}
	p.active = true
	if p.relays {
		p.run.BeginRelay(events)
	} else {
		p.run.Begin(events)
	}
	if !x.streams {
		return true
	}
	if !a.early {
		x.goLive(false)
	}
	a.live = true
	x.openResponse()
	return true
}

// openResponse sends the events that every stream begins with.
func (x *exchange) openResponse() {
	p := x.resp
	if !p.opened {
		p.opened = true
		_ = x.deliver(p.run.Open(false), respond.InProgress) // an error is noted
	}
}

// dataResponse takes the next bytes of a backend's answer, in chat's shape.
func (x *exchange) dataResponse(b []byte) error {
	p := x.resp
	events := p.run.Write(b)
	if !x.streams {
		return p.broken()
	}
	if err := x.deliver(events, respond.InProgress); err != nil {
		return err
	}
	return p.broken()
}

// errTooMuch ends an exchange whose answer is beyond all bounds.
var errTooMuch = errors.New("the answer is too large")

func (p *responding) broken() error {
	if p.run.TooMuch() {
		return errTooMuch
	}
	return nil
}

// deliver sends events: to the client, or to the store if the response runs in the background.
func (x *exchange) deliver(events []respond.Event, s respond.Status) error {
	p := x.resp
	if len(events) == 0 {
		return nil
	}
	if p.job != nil {
		if err := p.job.progress(events, s, p.run); err != nil {
			x.answer.writeErr = err
			return err
		}
		return nil
	}
	p.out = p.out[:0]
	for i := range events {
		p.out = events[i].Append(p.out, p.sequence)
		p.sequence++
	}
	return x.put(p.out)
}

// endResponse ends the response as its answer has ended, stores it and sends the last events. false: it failed.
func (x *exchange) endResponse(rest []byte) bool {
	p := x.resp
	if len(rest) > 0 {
		_ = x.deliver(p.run.Write(rest), respond.InProgress)
	}
	events := p.run.End(time.Now().Unix())
	if why := p.run.Failure(); why != nil {
		x.fail = &failure{kind: kindProvider, dispatched: DispatchedYes, message: why.Message}
		// Its message is the client's alone: a backend may quote the prompt in it.
		x.log(slog.LevelWarn, "run failed", "provider", x.out.Grant.Provider, "node", x.out.Grant.Node, "code", shown(why.Code))
	}
	if x.streams || x.fail == nil {
		x.keep()
	}
	if x.streams && x.answer.writeErr == nil {
		_ = x.deliver(events, p.run.Status())
	}
	return x.fail == nil
}

// failResponse ends a stream of a response that did not come to its end. The client never takes it for complete: the
// last event says that it failed.
func (x *exchange) failResponse() {
	p := x.resp
	code, message := x.fail.code, x.fail.message
	if x.err != nil && p.job != nil && p.job.stopped() {
		return // what becomes of it is the store's to say
	}
	x.openResponse()
	events := p.run.Fail(code, message, time.Now().Unix())
	if x.err == nil {
		x.keep()
	}
	if len(events) > 0 && x.deliver(events, p.run.Status()) == nil && p.job == nil {
		_ = x.flush()
	}
}

// keepTime bounds how long storing a response may take.
const keepTime = 10 * time.Second

// keep stores a foreground response that has ended, before the client hears of the end.
func (x *exchange) keep() {
	p := x.resp
	if p.job != nil || !p.q.Store {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), keepTime)
	defer cancel()
	r := x.stored()
	r.Asked = x.shown
	r.Object, r.Status = p.run.Object(), p.run.Status()
	if err := x.s.o.Store.Keep(ctx, r); err != nil {
		x.log(slog.LevelWarn, "response not stored", "response", r.ID, "error", err)
	}
}

// stored is the response as a Store takes it.
func (x *exchange) stored() *Stored {
	q := x.resp.q
	return &Stored{
		ID: q.ID, Principal: x.who.principal, Token: x.who.token, Model: x.name, Created: x.resp.created.Unix(), Previous: q.Previous,
		Input: q.Items,
	}
}

// wholeResponse sends a response that is no stream.
func (x *exchange) wholeResponse() {
	a := &x.answer
	if !x.endResponse(a.reader.end()) {
		x.tellFailure()
		return
	}
	h := x.w.Header()
	pass(h, a.header)
	delete(h, "Content-Encoding")
	x.ours(h)
	x.granted(h, a.dispatched)
	x.patience()
	writeJSON(x.w, http.StatusOK, append(x.resp.run.Object(), '\n'))
}

// waitResponse gives a waiting stream of a response a sign of life: agents take no comment for one.
func (x *exchange) waitResponse() {
	p := x.resp
	events := []respond.Event{p.run.Waiting()}
	if !p.opened {
		p.opened = true
		events = p.run.Open(false)
	}
	if x.deliver(events, respond.InProgress) == nil {
		_ = x.flush()
	}
}

// theirFailure is a backend's error, for a client that has the head of its answer already.
func (x *exchange) theirFailure() *failure {
	a := &x.answer
	code, message := respond.ReadError(a.buffer)
	if message == "" {
		message = "The provider answered with status " + string(appendInt(nil, a.status)) + " and no event stream."
	}
	f := &failure{kind: kindProvider, dispatched: a.dispatched, message: message}
	if code != "" {
		f.code = code
	}
	return f
}

func createdAt(r *Stored) time.Time { return time.Unix(r.Created, 0) }
