package cli

import (
	"encoding/json"
	"testing"

	"iop/noded/adapter/chat"
)

func text(role, s string) chat.Message {
	return chat.Message{Role: role, Parts: []chat.Part{{Kind: chat.PartText, Text: s}}}
}

func TestCompose(t *testing.T) {
	schema := &chat.Format{Kind: "json_schema", Schema: json.RawMessage(`{"a":1}`)}
	called := chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{Name: "f", Arguments: `{"x":1}`}}}
	for name, c := range map[string]struct {
		q    chat.Request
		args []string
		want prompt
	}{
		"one message": {chat.Request{Messages: []chat.Message{text("user", "hi\n")}}, nil, prompt{text: "hi\n"}},
		"system in front": {
			chat.Request{Messages: []chat.Message{text("system", "a"), text("user", "hi"), text("developer", "b")}},
			nil,
			prompt{text: "Instructions:\na\n\nb\n\nhi"},
		},
		"system apart": {chat.Request{Messages: []chat.Message{text("system", "a"), text("user", "hi")}}, []string{"{system}"}, prompt{text: "hi", system: "a"}},
		"transcript": {
			chat.Request{Messages: []chat.Message{text("user", "q"), text("assistant", "r"), {Role: "user", Name: "An\nn", Parts: text("", "s").Parts}}},
			nil,
			prompt{text: transcriptHead + "\n\nUser:\nq\n\nAssistant:\nr\n\nUser (An n):\ns"},
		},
		"tools of former turns": {
			chat.Request{Messages: []chat.Message{text("user", "q"), called, text("tool", "7")}},
			nil,
			prompt{text: transcriptHead + "\n\nUser:\nq\n\nAssistant:\n[called f with {\"x\":1}]\n\nTool result:\n7"},
		},
		"object":        {chat.Request{Messages: []chat.Message{text("user", "q")}, Format: &chat.Format{Kind: "json_object"}}, nil, prompt{text: "q\n\n" + objectTail}},
		"schema":        {chat.Request{Messages: []chat.Message{text("user", "q")}, Format: schema}, nil, prompt{text: "q\n\n" + schemaTail + `{"a":1}`}},
		"schema apart":  {chat.Request{Messages: []chat.Message{text("user", "q")}, Format: schema}, []string{"--s={schema}"}, prompt{text: "q", schema: `{"a":1}`}},
		"schema's file": {chat.Request{Messages: []chat.Message{text("user", "q")}, Format: schema}, []string{"{schema_file}"}, prompt{text: "q", schema: `{"a":1}`}},
	} {
		if got := compose(&c.q, c.args); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}
