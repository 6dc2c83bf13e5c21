package talk

import (
	"encoding/json"
	"fmt"
	"net/http"

	"iop/noded/adapter/ollama/recorded"
)

// fails answers what can't be done, in the server's words.
func (t *turn) fails() bool {
	var q request
	if json.Unmarshal(t.body, &q) != nil {
		t.wrong(http.StatusBadRequest, "BadRequestError", "invalid_type", "messages")
		return true
	}
	if _, text := q.Temperature.(string); text {
		t.wrong(http.StatusBadRequest, "BadRequestError", "invalid_type", "temperature")
		return true
	}
	switch t.script {
	case TooLong:
		t.tooLong()
	case Fail:
		t.wrong(http.StatusInternalServerError, "InternalServerError", "", "")
	case Loading:
		t.loading()
	default:
		return false
	}
	return true
}

// wrong is an error answer.
func (t *turn) wrong(status int, kind, code, param string) {
	t.json(status, t.failure(status, kind, code, param))
}

func (t *turn) failure(status int, kind, code, param string) string {
	const message = "the server says what is wrong"
	class := map[bool]string{true: "invalid_request_error", false: "server_error"}[status < 500]
	switch t.s.dialect {
	case VLLM:
		return fmt.Sprintf(`{"object":"error","message":%q,"type":%q,"param":null,"code":%d}`, message, kind, status)
	case Llama:
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"type":%q}}`, status, message, class)
	case Ollama:
		return fmt.Sprintf(`{"error":%q}`, message)
	}
	null := func(s string) string {
		if s == "" {
			return "null"
		}
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":%s,"code":%s}}`, message, class, null(param), null(code))
}

func (t *turn) tooLong() {
	switch t.s.dialect {
	case Llama:
		t.json(http.StatusBadRequest, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`)
	case Ollama:
		t.json(http.StatusBadRequest, recorded.TooLongBody)
	default:
		t.wrong(http.StatusBadRequest, "BadRequestError", "context_length_exceeded", "messages")
	}
}

// loading is the answer of a server whose model is not there yet. vLLM does not listen then; its queue may be full.
func (t *turn) loading() {
	switch t.s.dialect {
	case Llama:
		t.json(http.StatusServiceUnavailable, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
	case VLLM:
		t.json(http.StatusServiceUnavailable, `{"object":"error","message":"Request queue is full","type":"QueueOverflowError","param":null,"code":503}`)
	case Ollama:
		t.json(http.StatusServiceUnavailable, `{"error":"server busy, please try again. maximum pending requests exceeded"}`)
	default:
		t.wrong(http.StatusServiceUnavailable, "", "overloaded", "")
	}
}

// breakOff ends a stream as the server does when the model dies in it.
func (t *turn) breakOff() {
	switch t.s.dialect {
	case Ollama:
		t.send(recorded.BrokeOff + "\n")
		return
	case Llama:
		t.send("data: " + t.failure(http.StatusInternalServerError, "", "", "") + "\n\n")
	}
	panic(http.ErrAbortHandler)
}
