package anthropic

import (
	"encoding/json"
	"errors"

	"iop/edged/openai/pieces"
)

type reply struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Role    string       `json:"role"`
	Model   string       `json:"model"`
	Content []replyBlock `json:"content"`
	Reason  *string      `json:"stop_reason"`
	Stop    *string      `json:"stop_sequence"`
	Usage   usage        `json:"usage"`
}

type replyBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// Errors of answers.
var (
	errUnreadable = errors.New("the provider's answer can't be read")
	errEmpty      = errors.New("the provider's answer is empty")
)

// Whole makes a message of an answer that is no stream.
func (r *Run) Whole(chat []byte) ([]byte, error) {
	var c pieces.Chunk
	if err := json.Unmarshal(chat, &c); err != nil {
		return nil, errUnreadable
	}
	if c.Failed() {
		return nil, errors.New(theirs(c.Error))
	}
	if len(c.Choices) == 0 || c.Choices[0].Message == nil {
		return nil, errEmpty
	}
	first := &c.Choices[0]
	m := reply{ID: r.id, Type: "message", Role: "assistant", Model: r.model, Content: contentOf(first.Message)}
	for i := range first.Message.ToolCalls {
		r.calls = append(r.calls, &call{index: i})
	}
	r.stopped(first.Finish, first.Stopped)
	if u := c.Counted(); u != nil {
		r.usage = readUsage(u)
	}
	why := r.reason()
	m.Reason, m.Usage = &why, r.usage
	if r.stop != "" {
		m.Stop = &r.stop
	}
	return json.Marshal(&m)
}

func contentOf(d *pieces.Delta) []replyBlock {
	list := []replyBlock{}
	if t := d.Thought(); t != "" {
		list = append(list, replyBlock{Type: "thinking", Thinking: &t, Signature: new(string)})
	}
	if t := d.Content + d.Refusal; t != "" || len(d.ToolCalls) == 0 {
		list = append(list, replyBlock{Type: "text", Text: &t})
	}
	for i := range d.ToolCalls {
		c := &d.ToolCalls[i]
		list = append(list, replyBlock{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: input(c.Function.Arguments)})
	}
	return list
}

// input is what a tool is called with. What is no JSON object a model has garbled: the client is to see it.
func input(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return json.RawMessage(arguments)
	}
	if arguments == "" {
		return json.RawMessage("{}")
	}
	garbled, err := json.Marshal(map[string]string{"_garbled": arguments})
	if err != nil {
		return json.RawMessage("{}")
	}
	return garbled
}
