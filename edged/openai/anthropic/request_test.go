package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChat: what is asked in Anthropic's words is asked in chat's.
func TestChat(t *testing.T) {
	const body = `{"model":"m","max_tokens":64,"stream":true,"stop_sequences":["END"],"temperature":0,"top_k":5,
	"metadata":{"user_id":"u1"},"thinking":{"type":"enabled","budget_tokens":4096},
	"system":[{"type":"text","text":"Be short.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be kind."}],
	"tools":[{"name":"get","description":"d","input_schema":{"type":"object"}}],
	"tool_choice":{"type":"tool","name":"get","disable_parallel_tool_use":true},
	"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},
	"messages":[
	 {"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
	   {"type":"image","source":{"type":"url","url":"http://x/y.png"}},{"type":"document","title":"t","source":{"type":"text","data":"doc"}}]},
	 {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I'll see"},{"type":"tool_use","id":"c1","name":"get","input":{"a":1}}]},
	 {"role":"user","content":[{"type":"text","text":"and?"},{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"url","url":"http://x/z.png"}}]}]},
	 {"role":"assistant","content":"done"},{"role":"user","content":"bye"}]}`
	const want = `{"model":"m","max_tokens":64,"temperature":0,"top_k":5,"stop":["END"],"user":"u1","stream":true,"stream_options":{"include_usage":true},
	"reasoning_effort":"medium","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"get"}},
	"tools":[{"type":"function","function":{"name":"get","description":"d","parameters":{"type":"object"}}}],
	"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":true}},
	"messages":[{"role":"system","content":"Be short.\nBe kind."},
	 {"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"http://x/y.png"}},{"type":"text","text":"t\ndoc"}]},
	 {"role":"assistant","content":"I'll see","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]},
	 {"role":"tool","tool_call_id":"c1","content":"The tool failed:\nno"},
	 {"role":"user","content":[{"type":"text","text":"and?"},{"type":"image_url","image_url":{"url":"http://x/z.png"}}]},
	 {"role":"assistant","content":"done"},{"role":"user","content":"bye"}]}`
	q, p := Read([]byte(body))
	if p != nil {
		t.Fatal(p)
	}
	chat, p := q.Chat()
	if p != nil {
		t.Fatal(p)
	}
	if diff := cmp.Diff(decoded(t, want), decoded(t, string(chat))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func decoded(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return v
}

// TestRefused: what chat has no words for is refused by its name, with a cure.
func TestRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"x"}]}`:                "max_tokens: Field required",
		`{"max_tokens":0,"messages":[{"role":"user","content":"x"}]}`: "max_tokens: Input should be greater",
		`{"max_tokens":1}`:   "messages: at least one",
		`{"max_tokens":"1"}`: "max_tokens: a string can't stand here",
		`{"max_tokens":1,"messages":[{"role":"robot","content":"x"}]}`:                                                                    "messages.0.role",
		`{"max_tokens":1,"messages":[{"role":"user","content":7}]}`:                                                                       "messages.0.content: Input should be",
		`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"hologram"}]}]}`:                                                   `"hologram"`,
		`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c9"}]}]}`:                             `"c9"`,
		`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`:        "input_schema",
		`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"yaml"}}}`:                          "output_config.format",
		`{"max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"a","input_schema":{}}],"tool_choice":{"type":"x"}}`: "tool_choice.type",
	} {
		q, p := Read([]byte(body))
		if p == nil {
			_, p = q.Chat()
		}
		if p == nil || !strings.Contains(p.Message, want) {
			t.Errorf("%s: %v, want %s", body, p, want)
		}
	}
}
