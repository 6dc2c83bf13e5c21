package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

const helloMessage = `{"model":"ornith:35b","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`

func (e *edge) message(body string, header ...string) *reply {
	e.t.Helper()
	return e.do("POST", "/v1/messages", body, header...)
}

// anthropicError is an error in Anthropic's shape.
type anthropicError struct {
	Type  string
	Error struct{ Type, Message, Code string }
	ID    string `json:"request_id"`
}

func wantAnthropic(t *testing.T, r *reply, status int, kind string) {
	t.Helper()
	var e anthropicError
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Type != "error" || e.Error.Message == "" {
		t.Fatalf("no error in Anthropic's shape: %d %s", r.StatusCode, r.body)
	}
	if r.StatusCode != status || e.Error.Type != kind {
		t.Errorf("got %d %s, want %d %s: %s", r.StatusCode, e.Error.Type, status, kind, e.Error.Message)
	}
	if id := r.Header.Get("Request-Id"); id == "" || id != e.ID && e.ID != "" || id != r.Header.Get("X-Request-Id") {
		t.Errorf("request-id %q, x-request-id %q, in the body %q", id, r.Header.Get("X-Request-Id"), e.ID)
	}
}

// A provider without the API is asked for chat, with the model's policy, and its answer is made into a message.
func TestMessagesTranslated(t *testing.T) {
	e := newEdge(t)
	e.backend = answerJSON(200, `{"id":"1","model":"served/org/model:7b","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`)
	r := e.message(`{"model":"org/model:7b","max_tokens":500,"system":"s","messages":[{"role":"user","content":"hi"}]}`, "Anthropic-Version", "2023-06-01")
	var m struct {
		ID, Type, Model, Role string
		StopReason            string `json:"stop_reason"`
		Content               []struct{ Type, Text string }
		Usage                 struct {
			In  int `json:"input_tokens"`
			Out int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil || r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if m.Type != "message" || m.Model != "org/model:7b" || m.StopReason != "end_turn" || len(m.Content) != 1 || m.Content[0].Text != "hello" || m.Usage.In != 9 || m.Usage.Out != 2 || !strings.HasPrefix(m.ID, "msg_") {
		t.Errorf("the message is %s", r.body)
	}
	if r.Header.Get("X-Iop-Provider") != "p1" || r.Header.Get("Request-Id") == "" || r.ContentLength != int64(len(r.body)) {
		t.Errorf("headers %v of %d bytes", r.Header, len(r.body))
	}
	sent := e.last()
	var chat map[string]any
	if err := json.Unmarshal(sent.Body, &chat); err != nil {
		t.Fatal(err)
	}
	if sent.Path != "/v1/chat/completions" || chat["model"] != "served/org/model:7b" || chat["max_tokens"] != 100.0 || chat["temperature"] != 0.5 || sent.Header.Get("Anthropic-Version") != "" {
		t.Errorf("sent to %s: %s, %v", sent.Path, sent.Body, sent.Header)
	}
}

// The same as a stream, which is flushed piece by piece.
func TestMessagesTranslatedStream(t *testing.T) {
	e := newEdge(t)
	e.backend = answerAs("text/event-stream", 200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he", "llo\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
	r := e.message(strings.Replace(helloMessage, `{`, `{"stream":true,`, 1))
	for _, want := range []string{"event: message_start\n", `"text":"hello"`, `"stop_reason":"max_tokens"`, `"output_tokens":4`, "event: message_stop\n"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("the stream lacks %s: %s", want, r.body)
		}
	}
	if r.err != nil || r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%v, %v", r.err, r.Header)
	}
}

// A stream that the backend broke off, or ended without saying why, ends with an error event and a broken connection.
func TestMessagesStreamBreaks(t *testing.T) {
	piece := "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he\"}}]}\n\n"
	for name, c := range map[string]struct {
		can fsm.Needs
		end openai.End
	}{
		"translated, broken":            {fsm.NeedChat, openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}},
		"translated, without an end":    {fsm.NeedChat, openai.End{Dispatched: openai.DispatchedYes, Complete: true}},
		"of the provider's own, broken": {fsm.NeedChat | fsm.NeedMessages, openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, func(_ *openai.Options, v *openai.View) { v.Providers[0].Can = c.can })
			e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
				_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
				_ = a.Data([]byte(piece))
				return c.end
			}
			r := e.message(strings.Replace(helloMessage, `{`, `{"stream":true,`, 1))
			at := strings.LastIndex(r.body, "event: error\ndata: ")
			if at < 0 || r.err == nil {
				t.Fatalf("it ended with %v: %s", r.err, r.body)
			}
			var told anthropicError
			if err := json.Unmarshal([]byte(strings.TrimPrefix(r.body[at:], "event: error\ndata: ")), &told); err != nil || told.Type != "error" || told.Error.Type != "api_error" {
				t.Errorf("the last event is %s", r.body[at:])
			}
		})
	}
}

// A provider that has the API is asked in its own words, and its answer passes with the model mapped back.
func TestMessagesPassedThrough(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) { v.Providers[0].Can = fsm.NeedChat | fsm.NeedMessages })
	e.backend = answerAs("text/event-stream", 200, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"served/ornith:35b\",\"usage\":{\"input_tokens\":5}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	body := `{"model":"ornith:35b","max_tokens":5,"stream":true,"novel":{"kept":1},"messages":[{"role":"user","content":[{"type":"hologram"}]}]}`
	r := e.do("POST", "/v1/messages?beta=true", body, "Anthropic-Version", "2023-06-01", "X-Api-Key", "secret")
	if r.StatusCode != 200 || !strings.Contains(r.body, `"model":"ornith:35b"`) || strings.Contains(r.body, "served/") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	sent := e.last()
	if want := strings.Replace(body, `"ornith:35b"`, `"served/ornith:35b"`, 1); string(sent.Body) != want || sent.Path != "/v1/messages?beta=true" || sent.Header.Get("Anthropic-Version") == "" || sent.Header.Get("X-Api-Key") != "" {
		t.Errorf("sent to %s: %s %v", sent.Path, sent.Body, sent.Header)
	}
}

// In a mixed group each provider is asked as it can be; what chat has no words for only fails at one that has nothing else.
func TestMessagesMixedGroup(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Providers = append(v.Providers, openai.Provider{ID: "p2", Can: fsm.NeedChat | fsm.NeedMessages})
	})
	r := e.message(`{"model":"ornith:35b","max_tokens":5,"messages":[{"role":"user","content":[{"type":"hologram"}]}]}`)
	wantAnthropic(t, r, 400, "invalid_request_error")
	if e.free() != fsm.ReasonNotRun {
		t.Error("the lease was not given back as not run")
	}
	if r.Header.Get("X-Iop-Dispatched") != "false" {
		t.Errorf("x-iop-dispatched is %q", r.Header.Get("X-Iop-Dispatched"))
	}
}

// Every error of a message has Anthropic's shape: ours, and the providers' own.
func TestMessagesErrors(t *testing.T) {
	token := func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
	}
	e := newEdge(t, token)
	wantAnthropic(t, e.message(helloMessage), 401, "authentication_error")
	wantAnthropic(t, e.message(helloMessage, "X-Api-Key", "wrong"), 401, "authentication_error")
	key := []string{"X-Api-Key", "secret"}
	wantAnthropic(t, e.message(`{"model":"nope","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, key...), 404, "not_found_error")
	wantAnthropic(t, e.message(`{"model":"ornith:35b"`, key...), 400, "invalid_request_error")
	wantAnthropic(t, e.message(`{"model":"ornith:35b","messages":[]}`, key...), 400, "invalid_request_error")
	wantAnthropic(t, e.do("GET", "/v1/messages", "", key...), 405, "invalid_request_error")
	for code, want := range map[string]struct {
		status int
		kind   string
	}{"queue_full": {429, "rate_limit_error"}, "queue_timeout": {503, "overloaded_error"}, "unavailable": {503, "overloaded_error"}, "context_too_long": {400, "invalid_request_error"}} {
		e.run = func(context.Context, openai.Request, openai.Caller) error { return coded(code) }
		r := e.message(helloMessage, key...)
		wantAnthropic(t, r, want.status, want.kind)
		if want.status != 400 && (r.Header.Get("Retry-After") != "7" || r.Header.Get("Retry-After-Ms") != "7000") {
			t.Errorf("%s: Retry-After %q", code, r.Header.Get("Retry-After"))
		}
	}
	e.run = nil
	e.backend = answerJSON(400, `{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}`)
	r := e.message(helloMessage, key...)
	wantAnthropic(t, r, 400, "invalid_request_error")
	if !strings.Contains(r.body, "too long") {
		t.Errorf("the provider's own words are lost: %s", r.body)
	}
	e.backend = answerJSON(200, `{"choices":[]}`)
	wantAnthropic(t, e.message(helloMessage, key...), 502, "api_error")
}

// Counting tokens takes no slot, and counts what admission would.
func TestCountTokens(t *testing.T) {
	e := newEdge(t)
	e.run = func(context.Context, openai.Request, openai.Caller) error { return coded("queue_full") }
	count := func(body string) int {
		t.Helper()
		r := e.do("POST", "/v1/messages/count_tokens", body)
		var n struct {
			Tokens int `json:"input_tokens"`
		}
		if err := json.Unmarshal([]byte(r.body), &n); err != nil || r.StatusCode != 200 || r.Header.Get("Request-Id") == "" {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		return n.Tokens
	}
	short := count(`{"model":"ornith:35b","messages":[{"role":"user","content":"hello there"}]}`)
	long := count(`{"model":"ornith:35b","system":"` + strings.Repeat("word ", 400) + `","messages":[{"role":"user","content":"hello there"}]}`)
	if short < 3 || short > 20 || long < short+300 {
		t.Errorf("counted %d and %d", short, long)
	}
	wantAnthropic(t, e.do("POST", "/v1/messages/count_tokens", `{"model":"nope"}`), 404, "not_found_error")
	if e.seen != nil {
		t.Error("it was admitted")
	}
}

// A client that leaves in mid-stream cancels the run.
func TestMessagesAbort(t *testing.T) {
	e := newEdge(t)
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		_ = a.Data([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"he\"}}]}\n\n"))
		<-ctx.Done()
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "POST", "http://"+e.addr+"/v1/messages", strings.NewReader(strings.Replace(helloMessage, `{`, `{"stream":true,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadAtLeast(res.Body, make([]byte, 100), 100); err != nil {
		t.Fatal(err)
	}
	cancel()
	if why := e.free(); why != fsm.ReasonCanceled {
		t.Errorf("the lease came back as %v", why)
	}
}
