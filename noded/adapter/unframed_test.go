package adapter_test

import (
	"testing"

	"iop/noded/adapter"
)

// once answers one request and closes the connection.
func once(answer string) func(*rawConn) {
	return func(c *rawConn) {
		if c.request() != nil {
			c.write(answer)
		}
	}
}

// TestAKilledBackendWithoutFramingIsNoEnd: a body without length and chunks ends with its connection, and the kernel
// closes the connection of a killed backend in good order. Such an answer must not count as complete.
func TestAKilledBackendWithoutFramingIsNoEnd(t *testing.T) {
	const stream, json = "text/event-stream; charset=utf-8", "application/json"
	const chunk = `data: {"choices":[{"index":0,"delta":{"content":"[DONE]"},"finish_reason":null}]}` + "\n\n"
	for name, c := range map[string]struct {
		kind, body string
		whole      bool
	}{
		"nothing":                 {stream, "", false},
		"between two events":      {stream, chunk + chunk, false},
		"within an event":         {stream, chunk + chunk[:30], false},
		"done":                    {stream, chunk + "data: [DONE]\n\n", true},
		"done, CR LF":             {stream, "data:[DONE]\r\n\r\n", true},
		"done, without line end":  {stream, chunk + "data: [DONE]", true},
		"finish reason":           {stream, chunk + `data: {"choices":[{"delta":{},"finish_reason": "stop"}]}` + "\n\n", true},
		"finish reason, cut":      {stream, chunk + `data: {"choices":[{"delta":{},"finish_reason": `, false},
		"responses":               {stream, "event: response.completed\ndata: {}\n\n", true},
		"JSON":                    {json, `{"a":["}\"",{}]}` + "\n", true},
		"JSON without its end":    {json, `{"a":["}\"",{}]`, false},
		"JSON within a string":    {json, `{"a":"}`, false},
		"text can't be told":      {"text/plain", "abc", true},
		"encoded can't be told":   {json + "\r\nContent-Encoding: br", "{", true},
		"problem+json, cut short": {"application/problem+json", "{", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRawBackend(t, once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "+c.kind+"\r\n\r\n"+c.body))
			r, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), post("{}"))
			code := ""
			if !c.whole {
				code = adapter.CodeBackendBroke
			}
			wantEnd(t, end, adapter.DispatchedYes, code)
			if r.body.String() != c.body {
				t.Errorf("passed %q", r.body.String())
			}
		})
	}
}
