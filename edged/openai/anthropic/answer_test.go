package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const talk = ": queued position=2\n\n" +
	`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}` + "\r\n\r\n" +
	`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm é"}}]}` + "\n\n" +
	`data:{"choices":[{"index":0,"delta":{"content":"Hel"}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,` + "\n" + `data: "delta":{"content":"lo 🎈"}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":""}}]}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"put","arguments":"{\"b\""}},{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":":2}"}}]}}]}` + "\n\n" +
	`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n" +
	"data: [DONE]\n\n"

// told reads a stream of messages as an SDK does: blocks that grow, one open at a time.
func told(t *testing.T, sse string) (m map[string]any, types []string) {
	t.Helper()
	var blocks []any
	open := -1
	for _, event := range strings.Split(sse, "\n\n") {
		if event == "" || event[0] == ':' {
			continue
		}
		name, data, _ := strings.Cut(event, "\ndata: ")
		e := decoded(t, data).(map[string]any)
		if "event: "+e["type"].(string) != name {
			t.Errorf("%s has the type %v", name, e["type"])
		}
		types = append(types, e["type"].(string))
		switch e["type"] {
		case "message_start":
			m = e["message"].(map[string]any)
		case "content_block_start":
			if open >= 0 || int(e["index"].(float64)) != len(blocks) {
				t.Errorf("block %v begins while %d is open", e["index"], open)
			}
			open = len(blocks)
			blocks = append(blocks, e["content_block"])
		case "content_block_stop":
			if int(e["index"].(float64)) != open {
				t.Errorf("block %v ends while %d is open", e["index"], open)
			}
			open = -1
		case "content_block_delta":
			if int(e["index"].(float64)) != open {
				t.Errorf("block %v grows while %d is open", e["index"], open)
			}
			b, d := blocks[open].(map[string]any), e["delta"].(map[string]any)
			for _, key := range []string{"text", "thinking", "partial_json"} {
				if s, ok := d[key].(string); ok {
					was, _ := b[key].(string)
					b[key] = was + s
				}
			}
		case "message_delta":
			for k, v := range e["delta"].(map[string]any) {
				m[k] = v
			}
			m["usage"] = e["usage"]
		}
	}
	if m != nil {
		m["content"] = blocks
	}
	return m, types
}

// TestStream: a stream of chat becomes one of messages, wherever the network has cut it.
func TestStream(t *testing.T) {
	want := decoded(t, `{"id":"msg_1","type":"message","role":"assistant","model":"key","stop_reason":"tool_use","stop_sequence":null,
	"usage":{"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":7},
	"content":[{"type":"thinking","thinking":"hm é","signature":""},{"type":"text","text":"Hello 🎈"},
	{"type":"tool_use","id":"c1","name":"get","input":{},"partial_json":"{\"a\":1}"},{"type":"tool_use","id":"c2","name":"put","input":{},"partial_json":"{\"b\":2}"}]}`)
	for cut := 1; cut <= len(talk); cut++ {
		r := NewRun(&Request{}, "msg_1", "key", 99)
		var out strings.Builder
		for i := 0; i < len(talk); i += cut {
			out.Write(r.Stream([]byte(talk[i:min(i+cut, len(talk))])))
		}
		rest, ok := r.End()
		if !ok {
			t.Fatalf("cut to %d: %v", cut, r.Problem())
		}
		out.Write(rest)
		if !strings.HasPrefix(out.String(), ": queued position=2\n\nevent: message_start\n") {
			t.Fatalf("it begins %.60q", out.String())
		}
		got, types := told(t, out.String())
		if diff := cmp.Diff(want, any(got)); diff != "" {
			t.Fatalf("cut to %d (-want +got):\n%s", cut, diff)
		}
		if types[len(types)-1] != "message_stop" {
			t.Fatalf("it ends with %s", types[len(types)-1])
		}
	}
}

// TestStreamEndsBadly: a stream that broke off, or told an error, never ends like a good one.
func TestStreamEndsBadly(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"broke off":    {talk[:strings.Index(talk, `data: {"choices":[{"index":0,"delta":{},"fin`)], "broke off"},
		"nothing":      {"", "broke off"},
		"own error":    {`data: {"error":{"message":"out of memory","code":"oom"}}` + "\n\n", "out of memory"},
		"no JSON":      {"data: {\n\n", "can't be read"},
		"mixed pieces": {`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}],"content":""}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}` + "\n\n", "mixed"},
	} {
		r := NewRun(&Request{}, "msg_1", "key", 0)
		out := string(r.Stream([]byte(c.in)))
		rest, ok := r.End()
		out += string(rest)
		_, types := told(t, out)
		if ok || !strings.Contains(out, c.want) || types[len(types)-1] != "error" {
			t.Errorf("%s: good=%v, %s", name, ok, out)
		}
	}
}

// TestWhole: an answer that is no stream.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"text": {
			`{"choices":[{"message":{"content":"hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
			`{"content":[{"type":"text","text":"hi"}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}`,
		},
		"stop sequence": {
			`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop","stop_reason":"END"}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`,
			`{"content":[{"type":"text","text":"hi"}],"stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		},
		"calls, and a server that says stop after them": {
			`{"choices":[{"message":{"content":null,"reasoning":"hm","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"d","function":{"name":"g","arguments":"garb"}}]},"finish_reason":"stop"}]}`,
			`{"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"tool_use","id":"c","name":"f","input":{"a":1}},{"type":"tool_use","id":"d","name":"g","input":{"_garbled":"garb"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}`,
		},
	} {
		got, err := NewRun(&Request{Stop: []string{"END"}}, "msg_1", "key", 9).Whole([]byte(c.in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := decoded(t, c.want).(map[string]any)
		want["id"], want["type"], want["role"], want["model"] = "msg_1", "message", "assistant", "key"
		if diff := cmp.Diff(any(want), decoded(t, string(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, bad := range []string{`{`, `{"choices":[]}`, `{"error":{"message":"no"}}`} {
		if got, err := NewRun(&Request{}, "m", "k", 0).Whole([]byte(bad)); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

// TestErrors: chat's errors of every make become Anthropic's; its own stay.
func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"error":{"message":"m","type":"requests","code":"queue_full"}}`: `{"type":"error","error":{"type":"rate_limit_error","message":"m","code":"queue_full"},"request_id":"r"}`,
		`{"error":{"code":400,"message":"m"}}`:                            `{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"r"}`,
		`{"error":"text"}`:                                                `{"type":"error","error":{"type":"rate_limit_error","message":"text"},"request_id":"r"}`,
		`{"object":"error","message":"flat","code":404}`:                  `{"type":"error","error":{"type":"rate_limit_error","message":"flat"},"request_id":"r"}`,
		`{"type":"error","error":{"type":"own","message":"x"}}`:           `{"type":"error","error":{"type":"own","message":"x"}}`,
	} {
		got := FromChat([]byte(in), 429, "r")
		if string(got) != want || !json.Valid(got) {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	for status, want := range map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "invalid_request_error", 413: "request_too_large", 500: "api_error", 502: "api_error", 503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error"} {
		if got := ErrorType(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
}
