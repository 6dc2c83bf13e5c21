package demo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/demo"
)

// recorder is an Answer that keeps everything.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Head(status int, h http.Header) error { r.status, r.header = status, h; return nil }
func (r *recorder) Data(p []byte) error                  { r.body.Write(p); return nil }

func post(body string) *adapter.Call {
	return &adapter.Call{Method: http.MethodPost, Path: "/v1/chat/completions", Body: []byte(body)}
}

func do(ctx context.Context, a adapter.Adapter, c *adapter.Call) (*recorder, adapter.End) {
	var r recorder
	end := a.Do(ctx, c, &r)
	return &r, end
}

func wantEnd(t *testing.T, got adapter.End, d adapter.Dispatched, code string) {
	t.Helper()
	if got.Dispatched != d || got.Code != code {
		t.Fatalf("end is dispatched=%s code=%q (%s), want dispatched=%s code=%q", got.Dispatched, got.Code, got.Message, d, code)
	}
}

type demoAnswer struct {
	ID, Object, Model string
	Choices           []struct {
		Index   int
		Message struct {
			Role, Content, Refusal string
			Reasoning              string `json:"reasoning_content"`
			ToolCalls              []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Logprobs     *struct{ Content []struct{ Token string } }
		Delta        struct{ Role, Content *string }
		Text         string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func decode[T any](t *testing.T, b []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

func askDemo(t *testing.T, d *demo.Demo, path, body string) *recorder {
	t.Helper()
	c := post(body)
	c.Path = path
	r, end := do(t.Context(), d, c)
	wantEnd(t, end, adapter.DispatchedYes, "")
	return r
}

// frames splits a stream and checks its framing and end.
func frames(t *testing.T, r *recorder) []demoAnswer {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type is %q", got)
	}
	parts := strings.Split(r.body.String(), "\n\n")
	if n := len(parts); n < 2 || parts[n-1] != "" || parts[n-2] != "data: [DONE]" {
		t.Fatalf("the stream does not end with [DONE]: %q", r.body.String())
	}
	var out []demoAnswer
	for _, p := range parts[:len(parts)-2] {
		out = append(out, decode[demoAnswer](t, []byte(strings.TrimPrefix(p, "data: "))))
	}
	return out
}

func TestTheDemoSaysWhatItIsAndNeverThePrompt(t *testing.T) {
	d := demo.New(demo.Config{Words: 50})
	r := askDemo(t, d, "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"two words"},{"role":"user","content":[{"type":"text","text":"xyzzy plugh now"}]}]}`)
	a := decode[demoAnswer](t, r.body.Bytes())
	text := a.Choices[0].Message.Content
	if !strings.Contains(text, "iop's built-in demo provider") || !strings.Contains(text, "5 words in 2 messages") || strings.Contains(text, "xyzzy") {
		t.Errorf("the text is %q", text)
	}
	if a.Object != "chat.completion" || a.Model != "m" || a.Choices[0].Message.Role != "assistant" || *a.Choices[0].FinishReason != "stop" {
		t.Errorf("the answer is %s", r.body.String())
	}
	if u := a.Usage; u.PromptTokens != 5 || u.CompletionTokens != 50 || u.TotalTokens != 55 || len(strings.Fields(text)) != 50 {
		t.Errorf("usage is %+v", *u)
	}
	if r.header.Get("Content-Length") != fmt.Sprint(r.body.Len()) {
		t.Errorf("Content-Length %s for %d bytes", r.header.Get("Content-Length"), r.body.Len())
	}
}

func TestTheDemoStreamsOneWordAChunk(t *testing.T) {
	d := demo.New(demo.Config{Words: 30, WordInterval: time.Microsecond})
	const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]%s}`
	whole := decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`).body.Bytes())
	for name, c := range map[string]struct {
		extra  string
		frames int
	}{
		"without usage": {"", 32},
		"with usage":    {`,"stream_options":{"include_usage":true}`, 33},
	} {
		t.Run(name, func(t *testing.T) {
			got := frames(t, askDemo(t, d, "/v1/chat/completions", fmt.Sprintf(body, c.extra)))
			if len(got) != c.frames {
				t.Fatalf("%d frames, want %d", len(got), c.frames)
			}
			if r := got[0].Choices[0].Delta.Role; r == nil || *r != "assistant" {
				t.Errorf("the first frame has no role")
			}
			var text strings.Builder
			for i, f := range got[:32] {
				if f.Object != "chat.completion.chunk" || f.ID != got[0].ID || f.Usage != nil || len(f.Choices) != 1 {
					t.Fatalf("frame %d is %+v", i, f)
				}
				if (f.Choices[0].FinishReason != nil) != (i == 31) {
					t.Errorf("finish_reason in frame %d", i)
				}
				if s := f.Choices[0].Delta.Content; s != nil {
					text.WriteString(*s)
				}
			}
			if text.String() != whole.Choices[0].Message.Content {
				t.Errorf("streamed %q, whole it is %q", text.String(), whole.Choices[0].Message.Content)
			}
			if last := got[len(got)-1]; c.extra != "" && (last.Choices == nil || len(last.Choices) != 0 || last.Usage == nil || last.Usage.CompletionTokens != 30) {
				t.Errorf("the usage frame is %+v", last)
			}
		})
	}
}

func TestTheDemoKeepsToBoundsAndStops(t *testing.T) {
	d := demo.New(demo.Config{Words: 40})
	for body, want := range map[string]struct {
		text, reason string
		tokens       int // a piece of a word counts as one
	}{
		`{"model":"m","prompt":"a b","max_tokens":3}`:                             {"This is iop's", "length", 3},
		`{"model":"m","prompt":"a b","max_completion_tokens":1,"max_tokens":9}`:   {"This", "length", 1},
		`{"model":"m","prompt":["a b"],"stop":"built"}`:                           {"This is iop's ", "stop", 4},
		`{"model":"m","prompt":[1,2],"stop":["demo","iop"],"max_tokens":30}`:      {"This is ", "stop", 3},
		`{"model":"m","prompt":[[1,2]],"stop":["This"],"max_tokens":30}`:          {"", "stop", 0},
		`{"model":"m","prompt":"a b","max_tokens":2,"stop":["no such text", ""]}`: {"This is", "length", 2},
	} {
		a := decode[demoAnswer](t, askDemo(t, d, "/v1/completions", body).body.Bytes())
		if c := a.Choices[0]; c.Text != want.text || *c.FinishReason != want.reason || a.Object != "text_completion" {
			t.Errorf("%s\ngives %q %s, want %q %s", body, c.Text, *c.FinishReason, want.text, want.reason)
		}
		if a.Usage.PromptTokens != 2 || a.Usage.CompletionTokens != want.tokens {
			t.Errorf("%s\nhas usage %+v", body, *a.Usage)
		}
	}
	got := frames(t, askDemo(t, d, "/v1/completions", `{"model":"m","prompt":"a","max_tokens":2,"stream":true}`))
	if len(got) != 3 || got[0].Choices[0].Text+got[1].Choices[0].Text != "This is" || *got[2].Choices[0].FinishReason != "length" {
		t.Errorf("streamed %+v", got)
	}
}

func TestTheDemoRefusesInTheErrorShape(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	d := demo.New(demo.Config{Models: []string{"m"}, Words: 4})
	for _, c := range []struct {
		path, body string
		status     int
		param      string
		code       string
	}{
		{"/v1/chat/completions", `{`, 400, "", "invalid_json"},
		{"/v1/chat/completions", `{"messages":[{}]}`, 400, "model", "missing_required_parameter"},
		{"/v1/chat/completions", `{"model":"m"}`, 400, "messages", "missing_required_parameter"},
		{"/v1/chat/completions", `{"model":"m",` + hi + `,"stream":"yes"}`, 400, "stream", "invalid_type"},
		{"/v1/chat/completions", `{"model":"m",` + hi + `,"max_tokens":0}`, 400, "max_tokens", "integer_below_min_value"},
		{"/v1/chat/completions", `{"model":"other",` + hi + `}`, 404, "", "model_not_found"},
		{"/v1/completions", `{"model":"m"}`, 400, "prompt", "missing_required_parameter"},
		{"/v1/completions", `{"model":"m","prompt":"a","best_of":2}`, 400, "best_of", "unsupported_value"},
		{"/v1/completions", `{"model":"m","prompt":"a","echo":true}`, 400, "echo", "unsupported_value"},
		{"/v1/embeddings", `{"model":"m"}`, 400, "input", "missing_required_parameter"},
		{"/v1/embeddings", `{"model":"m","input":"x","dimensions":5000}`, 400, "dimensions", "invalid_value"},
		{"/v1/audio/speech", `{}`, 404, "", "not_found"},
	} {
		r := askDemo(t, d, c.path, c.body)
		e := decode[demoAnswer](t, r.body.Bytes()).Error
		if r.status != c.status || e == nil || e.Code != c.code || e.Param != c.param || e.Message == "" || e.Type != "invalid_request_error" {
			t.Errorf("%s %s\ngives %d %s", c.path, c.body, r.status, r.body.String())
		}
	}
}

func TestTheDemoEmbedsTheSameTextAlikeAndWithLengthOne(t *testing.T) {
	d := demo.New(demo.Config{})
	type answer struct {
		Data []struct {
			Index     int
			Embedding json.RawMessage
		}
		Usage map[string]int
	}
	ask := func(body string) answer {
		return decode[answer](t, askDemo(t, d, "/v1/embeddings", body).body.Bytes())
	}
	floats := ask(`{"model":"m","input":["the quick brown fox","the quick red fox","entirely different things here",""]}`)
	var v [][]float64
	for i, e := range floats.Data {
		v = append(v, decode[[]float64](t, e.Embedding))
		if e.Index != i || len(v[i]) != 256 || math.Abs(dot(v[i], v[i])-1) > 1e-5 {
			t.Errorf("vector %d: index %d, %d dimensions, squared length %v", i, e.Index, len(v[i]), dot(v[i], v[i]))
		}
	}
	if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near < 0.5 || math.Abs(far) > 0.4 {
		t.Errorf("texts that share words are %v alike, others %v", near, far)
	}
	if floats.Usage["prompt_tokens"] != 12 || floats.Usage["total_tokens"] != 12 {
		t.Errorf("usage %v", floats.Usage)
	}
	if _, has := floats.Usage["completion_tokens"]; has {
		t.Error("embeddings have completion tokens")
	}
	packed := ask(`{"model":"m","input":"the quick brown fox","encoding_format":"base64"}`)
	raw, err := base64.StdEncoding.DecodeString(decode[string](t, packed.Data[0].Embedding))
	if err != nil || len(raw) != 4*256 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for i := range 256 {
		if f := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])); f != float32(v[0][i]) {
			t.Fatalf("number %d is %v as base64 and %v as float", i, f, v[0][i])
		}
	}
	if got := decode[[]float64](t, ask(`{"model":"m","input":[1,2,3],"dimensions":8}`).Data[0].Embedding); len(got) != 8 {
		t.Errorf("%d dimensions, want 8", len(got))
	}
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func TestTheDemoListsItsModels(t *testing.T) {
	d := demo.New(demo.Config{Models: []string{"a", "b"}})
	r, end := do(t.Context(), d, &adapter.Call{Method: http.MethodGet, Path: "/v1/models"})
	wantEnd(t, end, adapter.DispatchedYes, "")
	l := decode[struct {
		Object string
		Data   []struct{ ID, Object string }
	}](t, r.body.Bytes())
	if l.Object != "list" || len(l.Data) != 2 || l.Data[0].ID != "a" || l.Data[1].Object != "model" {
		t.Errorf("the list is %s", r.body.String())
	}
	if d.Probe(t.Context(), "") != nil || d.Probe(t.Context(), "/health") != nil || d.Probe(t.Context(), "/nothing") == nil {
		t.Error("probes are wrong")
	}
}

func TestTheDemoStopsAtOnce(t *testing.T) {
	const chat = `{"model":"m","stream":%v,"messages":[{"role":"user","content":"hi"}]}`
	for name, c := range map[string]demo.Config{
		"before the first word": {Words: 3, FirstToken: time.Hour},
		"between words":         {Words: 3, WordInterval: time.Hour},
	} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				canceled, stop := context.WithCancel(t.Context())
				stop()
				d := demo.New(c)
				if _, end := do(canceled, d, post(fmt.Sprintf(chat, stream))); end.Code != adapter.CodeCanceled {
					t.Errorf("end is %+v", end)
				}
				if _, end := do(ctx, d, post(fmt.Sprintf(chat, stream))); end.Code != adapter.CodeBackendTimeout {
					t.Errorf("end is %+v", end)
				}
				call := post(fmt.Sprintf(chat, stream))
				call.Deadline = time.Now().Add(10 * time.Millisecond)
				if r, end := do(t.Context(), d, call); end.Code != adapter.CodeBackendTimeout || strings.Contains(r.body.String(), "[DONE]") {
					t.Errorf("end is %+v", end)
				}
			})
		}
	}
}

const hello = `{"model":"m","messages":[{"role":"user","content":"%s"}]%s}`

func TestTheDemoCallsTheToolThatIsAskedFor(t *testing.T) {
	d := demo.New(demo.Config{Words: 4})
	const tools = `,"tools":[{"type":"function","function":{"name":"now"}},{"type":"function","function":{"name":"weather",
		"parameters":{"type":"object","properties":{"city":{"type":"string","minLength":2},"days":{"type":"integer","minimum":3},"x":{"type":"null"}},"required":["city","days"]}}}]`
	for asked, want := range map[string][2]string{
		`Please tool:weather, now.` + "|": {"weather", `{"city":"xx","days":3}`},
		`tool:now` + "|":                  {"now", `{}`},
		`tool:none` + "|":                 {},
		`hi` + "|":                        {},
		`tool:now|,"tool_choice":"none"`:  {},
		`hi|,"tool_choice":"required"`:    {"now", `{}`},
		`hi|,"tool_choice":{"type":"function","function":{"name":"weather"}}`: {"weather", `{"city":"xx","days":3}`},
	} {
		text, members, _ := strings.Cut(asked, "|")
		c := decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", fmt.Sprintf(hello, text, tools+members)).body.Bytes()).Choices[0]
		switch calls := c.Message.ToolCalls; {
		case want[0] == "" && (len(calls) != 0 || *c.FinishReason != "stop"):
			t.Errorf("%s: %+v", asked, c)
		case want[0] != "" && (len(calls) != 1 || calls[0].Function.Name != want[0] || calls[0].Function.Arguments != want[1] || *c.FinishReason != "tool_calls"):
			t.Errorf("%s: %+v", asked, c)
		}
	}
	after := `{"model":"m","messages":[{"role":"user","content":"tool:now"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"now","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"12:00"}]` + tools + `}`
	if c := decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", after).body.Bytes()).Choices[0]; len(c.Message.ToolCalls) != 0 || c.Message.Content == "" {
		t.Errorf("after the result of the tool: %+v", c)
	}
}

func TestTheDemoGivesTheSmallestInstanceOfASchema(t *testing.T) {
	d := demo.New(demo.Config{Words: 4})
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","minItems":2,"items":{"enum":["x","y"]}},"c":{}},"required":["a","b"]}`: `{"a":"","b":["x","x"]}`,
		`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"n":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/t"}]}},"required":["n"]}}}`:       `{"n":null}`,
		`{"type":["boolean","null"]}`: `false`,
		`{"const":{"k":1}}`:           `{"k":1}`,
		`{"$ref":"#"}`:                `null`,
		`{}`:                          `null`,
	} {
		f := `,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":` + schema + `}}`
		if got := decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", fmt.Sprintf(hello, "hi", f)).body.Bytes()).Choices[0].Message.Content; got != want {
			t.Errorf("%s gives %s, want %s", schema, got, want)
		}
	}
	got := decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", fmt.Sprintf(hello, "hi", `,"response_format":{"type":"json_object"}`)).body.Bytes())
	if !json.Valid([]byte(got.Choices[0].Message.Content)) {
		t.Errorf("json_object gives %s", got.Choices[0].Message.Content)
	}
}

func TestTheDemoHasAContextWindow(t *testing.T) {
	d := demo.New(demo.Config{Words: 10})
	ask := func(window int64) demoAnswer {
		c := post(fmt.Sprintf(hello, "one two three", ""))
		c.Window = window
		r, end := do(t.Context(), d, c)
		wantEnd(t, end, adapter.DispatchedYes, "")
		return decode[demoAnswer](t, r.body.Bytes())
	}
	if a := ask(3); a.Error == nil || a.Error.Code != "context_length_exceeded" || a.Error.Param != "messages" {
		t.Errorf("a prompt that fills the window: %+v", a)
	}
	if a := ask(8); *a.Choices[0].FinishReason != "length" || a.Usage.CompletionTokens != 5 {
		t.Errorf("an answer that fills the window: %+v", a)
	}
	if a := ask(100); *a.Choices[0].FinishReason != "stop" || a.Usage.CompletionTokens != 10 {
		t.Errorf("a window with room: %+v", a)
	}
}

func TestTheDemoDoesWhatTestsAskFor(t *testing.T) {
	d := demo.New(demo.Config{Words: 4})
	ask := func(text, members string) demoAnswer {
		return decode[demoAnswer](t, askDemo(t, d, "/v1/chat/completions", fmt.Sprintf(hello, text, members)).body.Bytes())
	}
	if a := ask("demo:refuse", ""); a.Choices[0].Message.Refusal == "" || a.Choices[0].Message.Content != "" {
		t.Errorf("refuse: %+v", a)
	}
	if a := ask("demo:empty", ""); a.Choices[0].Message.Content != "" || *a.Choices[0].FinishReason != "stop" {
		t.Errorf("empty: %+v", a)
	}
	if a := ask("demo:error", ""); a.Error == nil || a.Error.Code != "demo_error" {
		t.Errorf("error: %+v", a)
	}
	r, end := do(t.Context(), d, post(fmt.Sprintf(hello, "demo:error", `,"stream":true`)))
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
	if s := r.body.String(); !strings.Contains(s, "demo_error") || strings.Contains(s, "[DONE]") {
		t.Errorf("error in a stream: %s", s)
	}
	slow, began := demo.New(demo.Config{Words: 3, WordInterval: time.Millisecond}), time.Now()
	if askDemo(t, slow, "/v1/chat/completions", fmt.Sprintf(hello, "demo:slow", "")); time.Since(began) < 40*time.Millisecond {
		t.Errorf("slow: three words took %s", time.Since(began))
	}
	if a := ask("hi", `,"n":3,"logprobs":true,"reasoning_effort":"high"`); len(a.Choices) != 3 || a.Choices[2].Index != 2 || a.Choices[2].Message.Content != "This is iop's built-in" ||
		len(a.Choices[1].Logprobs.Content) != 4 || a.Choices[0].Message.Reasoning == "" {
		t.Errorf("choices: %+v", a)
	}
}
