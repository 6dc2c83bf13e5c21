package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// failure is what Ollama said is wrong, and the status that it said it with; of a line within an answer 502.
type failure struct {
	status int
	text   string
}

// newFailure reads {"error":"text"}, and OpenAI's shape, which proxies in front answer with.
func newFailure(status int, body []byte) *failure {
	f := &failure{status: status}
	var own struct {
		Error string `json:"error"`
	}
	var other struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &own) == nil && own.Error != "":
		f.text = own.Error
	case json.Unmarshal(body, &other) == nil && other.Error.Message != "":
		f.text = other.Error.Message
	default:
		f.text = "status " + strconv.Itoa(status)
	}
	return f
}

// unquoted is the text up to where it quotes something, as in "error parsing tool call: raw='{…}'": that is a model's output
// or a prompt, and not for a log.
func (f *failure) unquoted() string {
	if i := strings.IndexAny(f.text, "\"'`{"); i >= 0 {
		return strings.TrimRight(f.text[:i], ":= ")
	}
	return f.text
}

func (f *failure) says(text string) bool { return strings.Contains(f.text, text) }

// notPulled: Ollama looks for the model before anything else.
func (f *failure) notPulled() bool {
	return f.status == http.StatusNotFound && f.says("model") && f.says("not found")
}

// notLoaded: the model does not fit into memory, so nothing was run with it.
func (f *failure) notLoaded() bool {
	return f.status >= 500 && f.says("model requires more system memory")
}

// busy: too many requests wait for a model already.
func (f *failure) busy() bool {
	return f.status == http.StatusServiceUnavailable && f.says("maximum pending requests exceeded")
}

// notRun tells whether Ollama provably did not run the request, so that another provider may.
func (f *failure) notRun() bool { return f.notPulled() || f.notLoaded() || f.busy() }

// problem is the failure in OpenAI's shape. window is the context that was asked for, 0 if none was.
func (f *failure) problem(q *chat.Request, window int64) *chat.Problem {
	p := &chat.Problem{Status: http.StatusBadRequest, Message: f.text}
	switch {
	case f.notPulled():
		p.Status, p.Code, p.Param = http.StatusNotFound, "model_not_found", "model"
		p.Message = "the provider's Ollama has no model " + q.Model
		p.Cure = "run 'ollama pull " + q.Model + "' on its machine"
	case f.busy():
		p.Status, p.Code, p.Cure = http.StatusServiceUnavailable, "provider_busy", "try again shortly"
	case f.notLoaded():
		p.Status, p.Code, p.Cure = http.StatusServiceUnavailable, "model_not_loaded", "give the provider a smaller num_ctx or model"
	case f.says("exceeds the context length"), f.says("exceeds maximum context length"):
		tooLong(p, q, window)
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		p.Status, p.Code, p.Message = http.StatusBadGateway, "provider_error", "the backend refuses the node's key"
	case f.status < 500:
		f.refused(p)
	default:
		p.Status, p.Code, p.Message = http.StatusBadGateway, "provider_error", "the backend failed: "+f.text
	}
	return p
}

// refused names the parameter that a 400 is about, where the text tells it.
func (f *failure) refused(p *chat.Problem) {
	p.Code = "unsupported_value"
	switch {
	case f.says("does not support thinking"), f.says("think value"):
		p.Param, p.Cure = "reasoning_effort", "leave reasoning_effort out"
	case f.says("does not support tools"):
		p.Param, p.Cure = "tools", "leave tools out, or take another model"
	case f.says("does not support"):
		p.Param = "model"
	default:
		p.Code = "invalid_request"
	}
}

func tooLong(p *chat.Problem, q *chat.Request, window int64) {
	p.Code = "context_length_exceeded"
	p.Param = map[chat.Endpoint]string{chat.Chat: "messages", chat.Completion: "prompt", chat.Embedding: "input"}[q.Endpoint]
	p.Message = "the input is longer than the context of the model"
	if window > 0 {
		p.Message = fmt.Sprintf("the input is longer than the context of %d tokens", window)
	}
	p.Cure = "shorten the " + p.Param
}

// held is a problem as an answer that is kept back, as the request may still run elsewhere.
func held(p *chat.Problem) *adapter.Held {
	body := p.JSON()
	return &adapter.Held{
		Status: p.Status,
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}},
		Body:   body,
	}
}
