package openai

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"iop/edged/openai/anthropic"
	"iop/fsm"
)

const (
	messagesPath    = "/v1/messages"
	countTokensPath = "/v1/messages/count_tokens"
)

// messages is what an exchange has more when it answers POST /v1/messages. The exchange is the same as that of a chat.
// It stands between the exchange and the client: a provider that has the API itself is asked in its words and its answer
// passes; any other is asked for chat, and its answer is made into a message here. Errors are told in Anthropic's shape.
type messages struct {
	http.ResponseWriter // the client's
	x                   *exchange
	q                   *anthropic.Request
	problem             *anthropic.Problem // why it can't be asked in chat's words
	chat                []byte             // the request in chat's words; nil = not made yet
	run                 *anthropic.Run     // of the present dispatch; nil = the provider has the API itself

	status  int // 0 = no head yet
	events  bool
	holding bool // the head waits until all of the body is here
	whole   []byte
	tooMuch bool
}

// heldMax bounds an answer that must be whole to be translated.
const heldMax = 32 << 20

// serveMessages answers what is asked in Anthropic's words.
func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request, to *route) {
	m := &messages{ResponseWriter: w}
	x := s.take(m, r, to)
	m.x, x.messages = x, m
	defer s.putBack(x)
	if r.Method != http.MethodPost {
		s.boundAnswer(w)
		x.shown = s.answerID(r, "")
		x.ours(w.Header())
		s.tell(m, notAllowed(w, r, "POST"))
		m.end()
		return
	}
	if to == &routeCountTokens {
		x.countTokens(r)
		m.end()
		return
	}
	abort := x.serve(r)
	if !m.end() || abort {
		panic(http.ErrAbortHandler)
	}
}

// countTokens answers with the estimate that admission would go by. It takes no slot.
func (x *exchange) countTokens(r *http.Request) {
	defer x.uncharge()
	x.shown = x.s.answerID(r, x.identify(r))
	if x.fail == nil {
		x.fail = x.prepare(r)
	}
	if x.fail != nil {
		x.s.o.Metrics.Route("", "").Ended(x.fail.outcome)
		x.tellFailure()
		return
	}
	x.ours(x.w.Header())
	x.patience()
	b := strconv.AppendInt([]byte(`{"input_tokens":`), x.model.scale.apply(x.raw), 10)
	writeJSON(x.w, http.StatusOK, append(b, "}\n"...))
	x.endPatience()
}

// read reads the request. What chat has no words for is only refused here if nobody could take it in its own.
func (m *messages) read() *failure {
	x := m.x
	if x.route == &routeCountTokens {
		return nil
	}
	var p *anthropic.Problem
	if m.q, p = anthropic.Read(x.body); p != nil {
		return untold(p)
	}
	if x.catalog.offers(fsm.NeedMessages) {
		return nil
	}
	return m.translate()
}

// translate makes the request in chat's words, with the model's policy applied as to any chat.
func (m *messages) translate() *failure {
	if m.problem != nil {
		return untold(m.problem)
	}
	if m.chat != nil {
		return nil
	}
	if m.chat, m.problem = m.q.Chat(); m.problem != nil {
		return untold(m.problem)
	}
	return nil
}

func untold(p *anthropic.Problem) *failure {
	return &failure{kind: kindMalformed, param: p.Param, message: p.Message, dispatched: DispatchedNo}
}

// address says how the granted provider is asked: in its own words if it has the API.
func (m *messages) address(p *Provider, served string) *failure {
	x := m.x
	m.run = nil
	if p.Can&fsm.NeedMessages != 0 {
		return nil
	}
	if f := m.translate(); f != nil {
		return f
	}
	asked := exchange{s: x.s, route: &routeChat, catalog: x.catalog, body: m.chat}
	if err := asked.scan.scan(asked.body); err != nil {
		return badJSON(asked.body, err) // it was made here
	}
	if f := asked.readModel(); f != nil {
		return f
	}
	asked.plan()
	x.out.Body, x.out.Path = asked.bodyFor(served), routeChat.path
	input, _ := strconv.ParseInt(x.estimate, 10, 64) // it was made of a number
	m.run = anthropic.NewRun(m.q, "msg_"+strings.TrimPrefix(x.s.newID(), "req_"), x.name, input)
	x.out.Header = x.out.Header.Clone() // another provider may know these
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"} {
		delete(x.out.Header, name)
	}
	return nil
}

// WriteHeader takes the head of an answer. It goes to the client at once only if the body goes as it comes.
func (m *messages) WriteHeader(status int) {
	h := m.Header()
	h["Request-Id"] = h["X-Request-Id"]
	m.status = status
	m.events = mediaType(h) == "text/event-stream"
	m.holding = status >= http.StatusBadRequest || m.run != nil && !m.events
	if m.run != nil || m.holding {
		delete(h, "Content-Length")
	}
	if !m.holding {
		m.ResponseWriter.WriteHeader(status)
	}
}

// Write takes bytes of an answer.
func (m *messages) Write(p []byte) (int, error) {
	switch {
	case m.holding:
		if len(m.whole)+len(p) > heldMax {
			m.tooMuch = true
			return len(p), nil
		}
		m.whole = append(m.whole, p...)
		return len(p), nil
	case m.run != nil && m.events:
		if _, err := m.ResponseWriter.Write(m.run.Stream(p)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return m.ResponseWriter.Write(p)
}

// ping is a sign of life while the request waits. It is no part of any provider's answer.
func (m *messages) ping() {
	if _, err := m.ResponseWriter.Write([]byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")); err != nil {
		m.x.answer.writeErr = err
		return
	}
	_ = m.x.flush() // the context ends if the client has left
}

// FlushError sends what the client was not sent yet.
func (m *messages) FlushError() error {
	if m.holding {
		return nil
	}
	return http.NewResponseController(m.ResponseWriter).Flush()
}

// SetWriteDeadline bounds writes to the client.
func (m *messages) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(m.ResponseWriter).SetWriteDeadline(t)
}

// SetReadDeadline bounds reads of the client's body.
func (m *messages) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(m.ResponseWriter).SetReadDeadline(t)
}

// end sends what is left when the exchange is over. false: the answer came to no good end, and must be broken off.
func (m *messages) end() bool {
	switch {
	case m.status == 0:
		return true
	case m.holding:
		m.sendHeld()
		return true
	case m.run == nil || !m.events:
		return true
	}
	rest, ok := m.run.End()
	if _, err := m.ResponseWriter.Write(rest); err != nil {
		return false
	}
	return m.FlushError() == nil && ok
}

// sendHeld sends an answer that was held until it was whole.
func (m *messages) sendHeld() {
	m.holding = false
	body, status := m.whole, m.status
	id := first(m.Header()["X-Request-Id"])
	switch {
	case m.tooMuch:
		body, status = anthropic.AppendError(nil, http.StatusBadGateway, kindProvider.code, "The provider's answer is too large.", id), http.StatusBadGateway
	case status >= http.StatusBadRequest:
		body = anthropic.FromChat(body, status, id)
	default:
		var err error
		if body, err = m.run.Whole(body); err != nil {
			status = http.StatusBadGateway
			body = anthropic.AppendError(nil, status, kindProvider.code, "The provider failed: "+err.Error()+". Try again.", id)
		}
	}
	writeJSON(m.ResponseWriter, status, append(body, '\n'))
}

// lastWords appends the event that ends a stream which broke off, unless the translation does it.
func (m *messages) lastWords(b []byte) []byte {
	x := m.x
	if m.run != nil {
		b = append(b, "data: "...)
		return append(x.errorEvent(b), "\n\n"...)
	}
	chat := x.errorEvent(nil)
	status := http.StatusBadGateway
	if x.fail != nil {
		status = x.fail.status
	}
	b = append(b, "event: error\ndata: "...)
	return append(append(b, anthropic.FromChat(chat, status, x.shown)...), "\n\n"...)
}
