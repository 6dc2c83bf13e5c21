package respond

import (
	"encoding/json"
	"strings"
	"testing"
)

// Wrong requests are refused in OpenAI's words: code, parameter, and the beginning of the message.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ body, code, param, message string }{
		{`{"model":"m"}`, CodeMissing, "input", "Missing required parameter: 'input'."},
		{`{"model":"m","messages":[]}`, CodeMissing, "input", "Missing required parameter: 'input'. This is /v1/responses"},
		{`{"model":"m","input":7}`, CodeType, "input", "Invalid type for 'input': expected a string or an array of items, but got an integer instead."},
		{`{"model":"m","input":[]}`, CodeValue, "input", "Invalid 'input': an empty array"},
		{`{"model":"m","input":["x"]}`, CodeType, "input[0]", "Invalid type for 'input[0]': expected an object, but got a string instead."},
		{`{"model":"m","input":[{"type":"nonsense"}]}`, CodeValue, "input[0].type", `Invalid value for 'input[0].type': "nonsense". Supported values are: 'message'`},
		{`{"model":"m","input":[{"role":"robot","content":"x"}]}`, CodeValue, "input[0].role", `Invalid value for 'input[0].role': "robot".`},
		{`{"model":"m","input":[{"role":"user"}]}`, CodeMissing, "input[0].content", "Missing"},
		{`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`, CodeUnsupported, "input[0].content[0].file_id", "Uploaded files are not supported here. Send the picture"},
		{`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":5}]}]}`, CodeType, "input[0].content.text", "Invalid type"},
		{`{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, CodeValue, "input", "No tool call found for function call output with call_id c."},
		{`{"model":"m","input":[{"type":"function_call","name":"f"}]}`, CodeMissing, "input[0].call_id", "Missing"},
		{`{"model":"m","input":"x","temperature":"hot"}`, CodeType, "temperature", "Invalid type for 'temperature': expected a decimal, but got a string instead."},
		{`{"model":"m","input":"x","temperature":3}`, CodeValue, "temperature", "Invalid 'temperature': expected a value between 0 and 2, but got 3 instead."},
		{`{"model":"m","input":"x","max_output_tokens":0}`, CodeBelow, "max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead."},
		{`{"model":"m","input":"x","max_output_tokens":1.5}`, CodeType, "max_output_tokens", "Invalid type for 'max_output_tokens': expected an integer, but got a decimal instead."},
		{`{"model":"m","input":"x","stream":"yes"}`, CodeType, "stream", "Invalid type for 'stream': expected a boolean, but got a string instead."},
		{`{"model":"m","input":"x","truncation":"some"}`, CodeValue, "truncation", "Invalid value for 'truncation'"},
		{`{"model":"m","input":"x","metadata":{"a":1}}`, CodeType, "metadata", "Invalid type"},
		{`{"model":"m","input":"x","text":{"format":{"type":"xml"}}}`, CodeValue, "text.format.type", "Invalid value"},
		{`{"model":"m","input":"x","text":{"format":{"type":"json_schema","schema":{}}}}`, CodeMissing, "text.format.name", "Missing"},
		{`{"model":"m","input":"x","reasoning":{"summary":"long"}}`, CodeValue, "reasoning.summary", "Invalid value"},
		{`{"model":"m","input":"x","tools":[{"type":"mcp"}]}`, CodeValue, "tools[0].type", "Tools of type 'mcp' are not supported here"},
		{`{"model":"m","input":"x","tools":[{"type":"function"}]}`, CodeMissing, "tools[0].name", "Missing"},
		{`{"model":"m","input":"x","tool_choice":"maybe"}`, CodeValue, "tool_choice", "Invalid value"},
		{`{"model":"m","input":"x","conversation":"c"}`, CodeUnsupported, "conversation", "'conversation' is not supported here. Send the items"},
		{`{"model":"m","input":"x","background":true,"store":false}`, CodeValue, "store", "A background response is stored"},
	} {
		q, p := Read([]byte(c.body), fixed)
		if p == nil {
			_, p = q.Chat(nil, false)
		}
		if p == nil {
			t.Errorf("%s was accepted", c.body)
			continue
		}
		if p.Code != c.code || p.Param != c.param || !strings.HasPrefix(p.Message, c.message) {
			t.Errorf("%s\n got %s %s: %s\nwant %s %s: %s", c.body, p.Code, p.Param, p.Message, c.code, c.param, c.message)
		}
	}
}

// Null is as good as absent, and what is not known is passed on.
func TestNullAndUnknown(t *testing.T) {
	q, p := Read([]byte(`{"model":"m","input":"x","temperature":null,"tools":null,"text":null,"reasoning":null,"metadata":null,"instructions":null,"min_p":0.5,"seed":3,"n":2}`), fixed)
	if p != nil {
		t.Fatal(p)
	}
	b, p := q.Chat(nil, false)
	if want := `{"model":"m","messages":[{"role":"user","content":"x"}],"min_p":0.5,"seed":3}`; p != nil || string(b) != want {
		t.Errorf("%s\n%v, want\n%s", b, p, want)
	}
}

func TestItemsTellTheirResponse(t *testing.T) {
	for _, output := range []bool{true, false} {
		id := itemID(typeMessage, testID, output, 12)
		if got, ok := ResponseOf(id); !ok || got != testID {
			t.Errorf("%s is of %q", id, got)
		}
	}
	for _, id := range []string{"", "msg_", "msg_xyzo1", "rs_0", "msg_o"} {
		if got, ok := ResponseOf(id); ok {
			t.Errorf("%q is of %q", id, got)
		}
	}
}

func TestReferences(t *testing.T) {
	body := `{"model":"m","input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`
	q, p := Read([]byte(body), fixed)
	if p != nil || len(q.References()) != 1 {
		t.Fatal(p, q.References())
	}
	if p := q.Refer(func(string) json.RawMessage { return nil }); p == nil || p.Param != "input[0].id" {
		t.Error(p)
	}
	p = q.Refer(func(string) json.RawMessage {
		return json.RawMessage(`{"type":"message","role":"assistant","content":"y"}`)
	})
	b, p2 := q.Chat(nil, false)
	if p != nil || p2 != nil || !strings.Contains(string(b), `{"role":"assistant","content":"y"}`) {
		t.Error(p, p2, string(b))
	}
}
