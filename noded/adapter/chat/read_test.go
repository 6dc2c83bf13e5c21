package chat_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"iop/noded/adapter/chat"
)

func TestAChatRequestIsReadWhole(t *testing.T) {
	q := read(t, chats+"?x=1", `{"model":"m","stream":true,"stream_options":{"include_usage":true,"other":1},"n":2,"max_tokens":9,"max_completion_tokens":7.0,
		"temperature":0.5,"top_p":1,"frequency_penalty":-2,"presence_penalty":null,"seed":-3,"stop":["a","","b"],"logprobs":true,"top_logprobs":2,
		"reasoning_effort":"low","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"f"}},"top_k":5,"user":"u",
		"response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"object"}}},
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],
		"messages":[{"role":"system","content":"s"},{"role":"developer","name":"dev","content":"d"},
		 {"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},
		   {"type":"image_url","image_url":{"url":"https://example.org/x.png","detail":"low"}},{"type":"text","text":"b"},
		   {"type":"input_audio","input_audio":{"data":"AAEC","format":"wav"}},{"type":"file","file":{"filename":"f.pdf","file_data":"data:application/pdf;base64,AAEC"}}]},
		 {"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
		 {"role":"tool","tool_call_id":"c1","content":"42"},{"role":"assistant","content":"","refusal":"no"}]}`)
	if q.Endpoint != chat.Chat || q.Model != "m" || !q.Stream || !q.IncludeUsage || q.N != 2 || *q.MaxTokens != 7 || *q.Temperature != 0.5 || *q.TopP != 1 ||
		*q.FrequencyPenalty != -2 || q.PresencePenalty != nil || *q.Seed != -3 || !slices.Equal(q.Stop, []string{"a", "b"}) || !q.Logprobs || q.TopLogprobs != 2 ||
		q.Effort != "low" || *q.ParallelToolCalls || q.ToolChoice != (chat.ToolChoice{Mode: "function", Name: "f"}) {
		t.Errorf("read %+v", q)
	}
	if f := q.Format; f == nil || f.Kind != "json_schema" || f.Name != "s" || !f.Strict || string(f.Schema) != `{"type":"object"}` {
		t.Errorf("format %+v", f)
	}
	if len(q.Tools) != 1 || q.Tools[0].Name != "f" || q.Tools[0].Description != "d" || !q.Tools[0].Strict || string(q.Tools[0].Parameters) != `{"type":"object"}` {
		t.Errorf("tools %+v", q.Tools)
	}
	if string(q.Extra["top_k"]) != "5" || string(q.Extra["user"]) != `"u"` || len(q.Extra) != 2 {
		t.Errorf("extra %v", q.Extra)
	}
	m := q.Messages
	if len(m) != 6 || m[0].Text() != "s" || m[1].Name != "dev" || m[2].Text() != "ab" || m[4].ToolCallID != "c1" || m[5].Refusal != "no" || m[3].Reasoning != "r" ||
		m[3].ToolCalls[0] != (chat.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}) {
		t.Errorf("messages %+v", m)
	}
	p := m[2].Parts
	if len(p) != 6 || p[1].MediaType != "image/png" || string(p[1].Data) != "\x00\x01\x02" || p[2].URL != "https://example.org/x.png" || p[4].MediaType != "audio/wav" ||
		p[5].Kind != chat.PartFile || p[5].Text != "f.pdf" || len(p[5].Data) != 3 {
		t.Errorf("parts %+v", p)
	}
}

func TestInputsAreTextsOrTokens(t *testing.T) {
	for body, want := range map[string]string{
		`"a"`: `a`, `["a","b"]`: `a|b`, `[1,2]`: `[1 2]`, `[[1],[2,3]]`: `[1]|[2 3]`, `["a",[1]]`: `a|[1]`, `""`: ``,
	} {
		for path, name := range map[string]string{completions: "prompt", embeddings: "input"} {
			q := read(t, path, fmt.Sprintf(`{"model":"m",%q:%s}`, name, body))
			var got []string
			for _, in := range append(q.Prompts, q.Inputs...) {
				if in.Tokens != nil {
					got = append(got, fmt.Sprint(in.Tokens))
				} else {
					got = append(got, in.Text)
				}
			}
			if s := strings.Join(got, "|"); s != want {
				t.Errorf("%s: %s", body, s)
			}
		}
	}
	q := read(t, completions, `{"model":"m","prompt":"a","max_tokens":0,"echo":true,"logprobs":3,"best_of":2,"stop":"x"}`)
	if *q.MaxTokens != 0 || !q.Echo || !q.Logprobs || q.TopLogprobs != 3 || q.BestOf != 2 || q.N != 1 || !slices.Equal(q.Stop, []string{"x"}) {
		t.Errorf("read %+v", q)
	}
	if q = read(t, embeddings, `{"model":"m","input":"a","encoding_format":"base64","dimensions":8}`); q.EncodingFormat != "base64" || q.Dimensions != 8 {
		t.Errorf("read %+v", q)
	}
}

func TestWronglyTypedParametersAreRefusedByName(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	with := func(member string) string { return `{"model":"m",` + hi + `,` + member + `}` }
	message := func(m string) string { return `{"model":"m","messages":[` + m + `]}` }
	part := func(p string) string { return message(`{"role":"user","content":[` + p + `]}`) }
	for _, c := range []struct{ path, body, param, code string }{
		{chats, `{`, "", "invalid_json"},
		{chats, `[]`, "", "invalid_json"},
		{chats, `null`, "", "invalid_json"},
		{chats, ``, "", "invalid_json"},
		{chats, `{` + hi + `}`, "model", "missing_required_parameter"},
		{chats, `{"model":5,` + hi + `}`, "model", "invalid_type"},
		{chats, `{"model":"m"}`, "messages", "missing_required_parameter"},
		{chats, `{"model":"m","messages":[]}`, "messages", "empty_array"},
		{chats, `{"model":"m","messages":"hi"}`, "messages", "invalid_type"},
		{chats, message(`"hi"`), "messages[0]", "invalid_type"},
		{chats, message(`{"content":"x"}`), "messages[0].role", "missing_required_parameter"},
		{chats, message(`{"role":"robot","content":"x"}`), "messages[0].role", "invalid_value"},
		{chats, message(`{"role":"user"}`), "messages[0].content", "invalid_type"},
		{chats, message(`{"role":"user","content":5}`), "messages[0].content", "invalid_type"},
		{chats, message(`{"role":"tool","content":"x"}`), "messages[0].tool_call_id", "missing_required_parameter"},
		{chats, message(`{"role":"assistant"}`), "messages[0].content", "invalid_type"},
		{chats, message(`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}`), "messages[0].tool_calls[0].function.arguments", "invalid_type"},
		{chats, part(`{"type":"text"}`), "messages[0].content[0].text", "missing_required_parameter"},
		{chats, part(`{"type":"video"}`), "messages[0].content[0].type", "invalid_value"},
		{chats, part(`{"text":"x"}`), "messages[0].content[0].type", "missing_required_parameter"},
		{chats, part(`{"type":"image_url","image_url":{"url":"ftp://x/y"}}`), "messages[0].content[0].image_url.url", "invalid_value"},
		{chats, part(`{"type":"image_url","image_url":{"url":"data:image/png;base64,***"}}`), "messages[0].content[0].image_url.url", "invalid_value"},
		{chats, part(`{"type":"image_url","image_url":7}`), "messages[0].content[0].image_url", "invalid_type"},
		{chats, part(`{"type":"input_audio","input_audio":{"data":"AA==","format":"ogg"}}`), "messages[0].content[0].input_audio.format", "invalid_value"},
		{chats, with(`"stream":"true"`), "stream", "invalid_type"},
		{chats, with(`"stream":1`), "stream", "invalid_type"},
		{chats, with(`"stream":true,"stream_options":{"include_usage":"x"}`), "stream_options.include_usage", "invalid_type"},
		{chats, with(`"stream_options":[]`), "stream_options", "invalid_type"},
		{chats, with(`"temperature":"0.5"`), "temperature", "invalid_type"},
		{chats, with(`"temperature":2.5`), "temperature", "decimal_above_max_value"},
		{chats, with(`"top_p":-1`), "top_p", "decimal_below_min_value"},
		{chats, with(`"max_tokens":"5"`), "max_tokens", "invalid_type"},
		{chats, with(`"max_tokens":1.5`), "max_tokens", "invalid_type"},
		{chats, with(`"max_completion_tokens":0`), "max_completion_tokens", "integer_below_min_value"},
		{chats, with(`"n":0`), "n", "integer_below_min_value"},
		{chats, with(`"n":129`), "n", "integer_above_max_value"},
		{chats, with(`"seed":"x"`), "seed", "invalid_type"},
		{chats, with(`"stop":5`), "stop", "invalid_type"},
		{chats, with(`"stop":[5]`), "stop[0]", "invalid_type"},
		{chats, with(`"logprobs":3`), "logprobs", "invalid_type"},
		{chats, with(`"top_logprobs":3`), "top_logprobs", "invalid_value"},
		{chats, with(`"logit_bias":[]`), "logit_bias", "invalid_type"},
		{chats, with(`"user":5`), "user", "invalid_type"},
		{chats, with(`"reasoning_effort":"hard"`), "reasoning_effort", "invalid_value"},
		{chats, with(`"response_format":"json"`), "response_format", "invalid_type"},
		{chats, with(`"response_format":{"type":"xml"}`), "response_format.type", "invalid_value"},
		{chats, with(`"response_format":{"type":"json_schema"}`), "response_format.json_schema", "missing_required_parameter"},
		{chats, with(`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":[]}}`), "response_format.json_schema.schema", "invalid_type"},
		{chats, with(`"tools":{}`), "tools", "invalid_type"},
		{chats, with(`"tools":[{"type":"custom"}]`), "tools[0].type", "invalid_value"},
		{chats, with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "missing_required_parameter"},
		{chats, with(`"tools":[{"type":"function","function":{"name":"f","parameters":"x"}}]`), "tools[0].function.parameters", "invalid_type"},
		{chats, with(`"tool_choice":"maybe"`), "tool_choice", "invalid_value"},
		{chats, with(`"tool_choice":"required"`), "tool_choice", "invalid_value"},
		{chats, with(`"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", "invalid_value"},
		{chats, with(`"functions":[]`), "functions", "unsupported_parameter"},
		{completions, `{"model":"m"}`, "prompt", "missing_required_parameter"},
		{completions, `{"model":"m","prompt":5}`, "prompt", "invalid_type"},
		{completions, `{"model":"m","prompt":[]}`, "prompt", "empty_array"},
		{completions, `{"model":"m","prompt":["a",5]}`, "prompt[1]", "invalid_type"},
		{completions, `{"model":"m","prompt":[1,"a"]}`, "prompt[1]", "invalid_type"},
		{completions, `{"model":"m","prompt":"a","best_of":0}`, "best_of", "integer_below_min_value"},
		{completions, `{"model":"m","prompt":"a","logprobs":true}`, "logprobs", "invalid_type"},
		{embeddings, `{"model":"m"}`, "input", "missing_required_parameter"},
		{embeddings, `{"model":"m","input":[[]]}`, "input[0]", "empty_array"},
		{embeddings, `{"model":"m","input":{}}`, "input", "invalid_type"},
		{embeddings, `{"model":"m","input":"x","dimensions":0}`, "dimensions", "integer_below_min_value"},
		{embeddings, `{"model":"m","input":"x","encoding_format":"hex"}`, "encoding_format", "invalid_value"},
	} {
		q, p := chat.Read(c.path, []byte(c.body))
		if q != nil || p == nil || p.Status != 400 || p.Param != c.param || p.Code != c.code || p.Message == "" {
			t.Errorf("%s\ngives %+v, want %s %s", c.body, p, c.param, c.code)
		}
	}
	if _, p := chat.Read("/v1/audio/speech", nil); p == nil || p.Status != 404 {
		t.Errorf("an unknown path gives %+v", p)
	}
}

// Whatever a client sends: a problem, or a request that can be answered.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}}]}],"stop":["a"],"n":2}`,
		`{"model":"m","prompt":[[1,2],"a"],"max_tokens":0,"logprobs":2,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","input":[1,2],"encoding_format":"base64"}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}],"tools":[{"type":"function","function":{"name":"f"}}]}`,
	} {
		for kind := range 3 {
			f.Add(kind, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		q, p := chat.Read([]string{chats, completions, embeddings}[uint(kind)%3], body)
		if p != nil {
			if p.Status != 400 || p.Message == "" || !json.Valid(p.JSON()) {
				t.Fatalf("problem %+v", p)
			}
			return
		}
		if q.Model == "" || len(q.Messages)+len(q.Prompts)+len(q.Inputs) == 0 || q.Endpoint != chat.Embedding && (q.N < 1 || q.N > 128) {
			t.Fatalf("request %+v", q)
		}
		var r recorded
		w := chat.NewWriter(q, &r, chat.Options{})
		for i := range max(q.N, 1) {
			w.At(i)
			if err := w.Text(q.Model); err != nil {
				t.Fatal(err)
			}
			if err := w.Finish(chat.FinishStop); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		checkJSON(t, &r)
	})
}
