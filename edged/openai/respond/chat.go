package respond

import (
	"encoding/json"
	"strconv"
)

// Path is where the chat request goes.
const Path = "/v1/chat/completions"

// Chat is the chat request that asks for the same. history are the items of the conversation so far, oldest first.
// stream asks for an event stream, with the usage at its end.
func (q *Request) Chat(history []json.RawMessage, stream bool) ([]byte, *Problem) {
	list, p := q.conversation(history)
	if p != nil {
		return nil, p
	}
	b := members([]byte{'{'}, pair{"model", q.fields["model"]}, pair{"messages", list})
	add := func(name string, value json.RawMessage) {
		if len(value) > 0 {
			b = append(append(append(append(b, `,"`...), name...), `":`...), value...)
		}
	}
	if stream {
		add("stream", json.RawMessage("true"))
		add("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	if len(q.tools.chat) > 0 {
		choice, _ := q.choice() // read before
		add("tools", array(q.tools.chat))
		add("tool_choice", choice)
		add("parallel_tool_calls", q.fields["parallel_tool_calls"])
	}
	add("response_format", q.format)
	add("reasoning_effort", q.effort)
	add("verbosity", q.verbosity())
	add("max_tokens", q.fields["max_output_tokens"]) // the older name is the one that every backend knows
	add("temperature", q.fields["temperature"])
	add("top_p", q.fields["top_p"])
	if q.likely {
		add("logprobs", json.RawMessage("true"))
		add("top_logprobs", q.fields["top_logprobs"])
	}
	for _, name := range q.passed() {
		b = append(append(append(b, ','), quote(name)...), ':')
		b = append(b, q.fields[name]...)
	}
	return append(b, '}'), nil
}

func (q *Request) verbosity() json.RawMessage {
	var t struct{ Verbosity json.RawMessage }
	if json.Unmarshal(q.fields["text"], &t) != nil || string(t.Verbosity) == "null" {
		return nil
	}
	return t.Verbosity
}

// conversation joins instructions, history and input to the messages of chat.
func (q *Request) conversation(history []json.RawMessage) ([]*message, *Problem) {
	var list []*message
	if s := text(q.fields["instructions"]); s != "" {
		list = append(list, &message{Role: roleSystem, Content: s})
	}
	for i, raw := range append(history[:len(history):len(history)], q.Items...) {
		param := "previous_response_id"
		if i >= len(history) {
			param = "input[" + strconv.Itoa(i-len(history)) + "]"
		}
		it, p := parse(raw)
		if p != nil {
			return nil, p
		}
		m, p := it.read(param)
		if p != nil {
			return nil, p
		}
		if m != nil {
			list = join(list, m)
		}
	}
	list = trimReasoning(list)
	if len(list) == 0 {
		return nil, &Problem{Code: CodeValue, Param: "input", Message: "Invalid 'input': there is nothing in it for a model. Send at least one message."}
	}
	return list, pairedCalls(list)
}

// join adds a message: to the one before it if chat has both in one.
func join(list []*message, m *message) []*message {
	if len(list) == 0 {
		return append(list, m)
	}
	last := list[len(list)-1]
	switch {
	// Many templates take one system message, at the beginning.
	case m.Role == roleSystem && last.Role == roleSystem && len(list) == 1:
		a, plain := last.Content.(string)
		b, both := m.Content.(string)
		if plain && both {
			last.Content = a + "\n\n" + b
			return list
		}
	case m.Role == roleAssistant && last.Role == roleAssistant:
		switch {
		case len(m.ToolCalls) > 0:
			last.ToolCalls = append(last.ToolCalls, m.ToolCalls...)
			return list
		case last.Content == nil && len(last.ToolCalls) == 0: // what it thought before it said this
			last.Content = m.Content
			last.Reasoning += m.Reasoning
			return list
		}
	}
	return append(list, m)
}

// trimReasoning drops thoughts that nothing came of.
func trimReasoning(list []*message) []*message {
	kept := list[:0]
	for _, m := range list {
		if m.Role != roleAssistant || m.Content != nil || len(m.ToolCalls) > 0 {
			kept = append(kept, m)
		}
	}
	return kept
}

// pairedCalls refuses outputs of calls that are not there: templates break over them.
func pairedCalls(list []*message) *Problem {
	calls := map[string]bool{}
	for _, m := range list {
		for i := range m.ToolCalls {
			calls[m.ToolCalls[i].ID] = true
		}
		if m.Role == roleTool && !calls[m.ToolID] {
			return &Problem{Code: CodeValue, Param: "input", Message: "No tool call found for function call output with call_id " + short(m.ToolID) +
				". Send the call before its output, or go on from its response with 'previous_response_id'."}
		}
	}
	return nil
}
