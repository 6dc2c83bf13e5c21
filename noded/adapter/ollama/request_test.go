package ollama_test

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/noded/adapter"
	"iop/noded/adapter/ollama"
)

func TestRequestsAreOllamasOwn(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for name, c := range map[string]struct {
		config ollama.Config
		window int64
		path   string // "" is chat
		body   string
		to     string
		want   string
	}{
		"plain": {body: `{"model":"m",` + hi + `}`, want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false}`},
		"parameters": {
			body: `{"model":"m",` + hi + `,"temperature":0.5,"top_p":0.9,"seed":7,"stop":"x","max_completion_tokens":9,"frequency_penalty":1,"presence_penalty":-1,
				"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"logprobs":true,"top_logprobs":2,"user":"u"}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"logprobs":true,"top_logprobs":2,"options":{"temperature":0.5,"top_p":0.9,
				"seed":7,"stop":["x"],"num_predict":9,"frequency_penalty":1,"presence_penalty":-1,"top_k":40,"min_p":0.1,"repeat_penalty":1.1}}`,
		},
		"settings": {
			config: ollama.Config{NumCtx: 8192, KeepAlive: "10m", Think: "off"}, window: 4096, body: `{"model":"m",` + hi + `}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"think":false,"keep_alive":"10m","options":{"num_ctx":8192}}`,
		},
		"the provider's window": {
			config: ollama.Config{KeepAlive: "-1"}, window: 4096, body: `{"model":"m",` + hi + `,"reasoning_effort":"low"}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"think":"low","keep_alive":-1,"options":{"num_ctx":4096}}`,
		},
		"no reasoning": {
			config: ollama.Config{Think: "high"}, body: `{"model":"m",` + hi + `,"reasoning_effort":"none"}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"think":false}`,
		},
		"json": {
			body: `{"model":"m",` + hi + `,"response_format":{"type":"json_object"}}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"format":"json"}`,
		},
		"schema": {
			body: `{"model":"m",` + hi + `,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"format":{"type":"object"}}`,
		},
		"conversation": {
			body: `{"model":"m","messages":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"a"},
				{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"b"}]},
				{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
				{"role":"tool","tool_call_id":"c1","content":"42"}]}`,
			want: `{"model":"m","messages":[{"role":"system","content":"d"},{"role":"user","content":"a\nb","images":["AAEC"]},
				{"role":"assistant","content":"","thinking":"r","tool_calls":[{"id":"c1","function":{"index":0,"name":"f","arguments":{"a":1}}}]},
				{"role":"tool","content":"42","tool_name":"f","tool_call_id":"c1"}],"stream":true,"truncate":false,"shift":false}`,
		},
		"tools": {
			body: `{"model":"m",` + hi + `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}},{"type":"function","function":{"name":"g"}}]}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"tools":[{"type":"function","function":{"name":"f","description":"d",
				"parameters":{"type":"object","properties":{"x":{"type":"string"}}}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]}`,
		},
		"no tool": {
			body: `{"model":"m",` + hi + `,"tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}]}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false}`,
		},
		"a named tool": {
			body: `{"model":"m",` + hi + `,"tool_choice":{"type":"function","function":{"name":"g"}},"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}`,
			want: `{"model":"m",` + hi + `,"stream":true,"truncate":false,"shift":false,"tools":[{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]}`,
		},
		"completion": {
			path: "/v1/completions", body: `{"model":"m","prompt":["p"],"suffix":"s","max_tokens":3}`, to: "/api/generate",
			want: `{"model":"m","prompt":"p","suffix":"s","stream":true,"truncate":false,"shift":false,"options":{"num_predict":3}}`,
		},
		"embeddings": {
			config: ollama.Config{KeepAlive: "1h"}, window: 512, path: "/v1/embeddings", body: `{"model":"m","input":["a","b"],"dimensions":8}`, to: "/api/embed",
			want: `{"model":"m","input":["a","b"],"dimensions":8,"truncate":false,"keep_alive":"1h","options":{"num_ctx":512}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, replay(ndjson(said1, doneStop)))
			c.config.BaseURL = f.url() + "/v1/"
			if c.path == "" {
				c.path, c.to = "/v1/chat/completions", "/api/chat"
			}
			call := post(c.path, c.body)
			call.Window = c.window
			do(t.Context(), newAdapter(t, c.config), call)
			got := slices.DeleteFunc(f.got(), func(a asked) bool { return a.path == "/api/show" }) // see TestAnImageThatTheModelWouldNotSeeIsRefused
			if len(got) != 1 || got[0].path != c.to || got[0].header.Get("Traceparent") == "" {
				t.Fatalf("asked %+v", got)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got[0].body); d != "" {
				t.Errorf("the body (want, got):\n%s", d)
			}
		})
	}
}

func TestWhatOllamaCantDoIsRefusedBeforeItIsAsked(t *testing.T) {
	f := newFake(t, replay(ndjson(doneStop)))
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	user := func(part string) *adapter.Call {
		return post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":[`+part+`]}]}`)
	}
	for _, c := range []struct {
		call  *adapter.Call
		param string
	}{
		{user(`{"type":"image_url","image_url":{"url":"https://example.org/x.png"}}`), "messages[0].content[0].image_url.url"},
		{user(`{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}`), "messages[0].content[0]"},
		{chats(`,"logit_bias":{"5":1}`), "logit_bias"},
		{chats(`,"top_k":"x"`), "top_k"},
		{chats(`,"temperature":"x"`), "temperature"},
		{post("/v1/chat/completions", `{"model":"tiny","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}]}`), "messages[0].tool_calls[0].function.arguments"},
		{post("/v1/completions", `{"model":"tiny","prompt":[1,2]}`), "prompt"},
		{post("/v1/completions", `{"model":"tiny","prompt":"a","echo":true}`), "echo"},
		{post("/v1/completions", `{"model":"tiny","prompt":"a","best_of":2}`), "best_of"},
		{post("/v1/embeddings", `{"model":"tiny","input":[[1]]}`), "input"},
	} {
		r := ask(t, a, c.call)
		if e := whole(t, r).Error; r.status != 400 || e == nil || e.Param != c.param || e.Message == "" {
			t.Errorf("%s gives %d %s", c.call.Body, r.status, r.body.String())
		}
	}
	if n := len(f.got()); n != 0 {
		t.Errorf("ollama was asked %d times", n)
	}
	if r := ask(t, a, chats(`,"logit_bias":{}`)); r.status != 200 {
		t.Errorf("an empty logit_bias gives %s", r.body.String())
	}
}

func TestAConfigurationThatIsWrongIsRefused(t *testing.T) {
	for _, c := range []ollama.Config{{}, {BaseURL: "ftp://x"}, {BaseURL: "http://127.0.0.1:1", Think: "much"}} {
		if _, err := ollama.New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// What has no translation goes to Ollama's own /v1 as it is.
func TestEverythingElseIsTunnelled(t *testing.T) {
	f := newFake(t, replay(jsonAnswer(200, `{"type":"message"}`)))
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	for _, c := range []*adapter.Call{
		post("/v1/messages?beta=true", `{"model":"tiny"}`), post("/v1/responses", `{"model":"tiny"}`), {Method: "GET", Path: "/v1/models"},
	} {
		r := ask(t, a, c)
		got := f.got()
		if last := got[len(got)-1]; last.path != c.Path || last.method != c.Method || r.body.String() != `{"type":"message"}` {
			t.Errorf("asked %+v, answered %s", last, r.body.String())
		}
	}
}

func TestProbesAskForTheVersionAndForModels(t *testing.T) {
	f := newFake(t, func(_ int, a asked, _ net.Conn) (string, bool) {
		switch {
		case a.path == "/api/version":
			return jsonAnswer(200, `{"version":"0.17.4"}`), false
		case strings.HasPrefix(a.path, "/api/tags"):
			return jsonAnswer(200, `{"models":[{"name":"tiny:latest","model":"tiny:latest","size":1365190,"details":{"format":"gguf"}},{"name":"reg/x:8b","model":"reg/x:8b"}]}`), false
		}
		return jsonAnswer(404, "404 page not found"), false
	})
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	for path, fault := range map[string]string{
		"": "", "/api/tags": "", "/api/tags?model=tiny": "", "/api/tags?model=tiny:latest&model=reg/x:8b": "",
		"/api/tags?model=tiny:7b": "ollama pull tiny:7b", "/api/tags?model=tiny&model=reg/x": "ollama pull reg/x", "/health": "404",
	} {
		if err := a.Probe(t.Context(), path); (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v", path, err)
		}
	}
	gone := newAdapter(t, ollama.Config{BaseURL: "http://127.0.0.1:1"})
	if gone.Probe(t.Context(), "") == nil || gone.Probe(t.Context(), "/api/tags?model=x") == nil {
		t.Error("a server that is not there is well")
	}
}
