package cli

import (
	"encoding/json"

	"iop/noded/adapter/chat"
)

// codex reads the output of "codex exec --json": thread.started, turn.started, item.completed for each whole message, then
// turn.completed with the usage, or turn.failed. It has no pieces of text. An error event is no end: it also tells of
// retries.
type codex struct {
	r    *reply
	done bool
}

func newCodex(r *reply) dialect { return &codex{r: r} }

type codexEvent struct {
	Type string `json:"type"`
	Item struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Usage *struct {
		Input     int64 `json:"input_tokens"`
		Cached    int64 `json:"cached_input_tokens"`
		Output    int64 `json:"output_tokens"`
		Reasoning int64 `json:"reasoning_output_tokens"`
	} `json:"usage"`
	Message string `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (c *codex) object(line []byte) error {
	var e codexEvent
	if json.Unmarshal(line, &e) != nil {
		return nil // not an event
	}
	switch e.Type {
	case "item.completed":
		return c.item(e.Item.Type, e.Item.Text)
	case "turn.completed":
		c.done = true
		if u := e.Usage; u != nil {
			c.r.usage = &chat.Usage{Prompt: u.Input, Completion: u.Output, Cached: u.Cached, Reasoning: u.Reasoning}
		}
	case "turn.failed":
		c.r.trouble, c.r.failed = e.Error.Message, true
	case "error":
		c.r.trouble = e.Message
	}
	return nil
}

func (c *codex) item(kind, text string) error {
	switch kind {
	case "agent_message":
		c.r.paragraph()
		return c.r.text(text)
	case "reasoning":
		return c.r.out.Reasoning(text)
	}
	return nil // a command that it ran, a file that it changed
}

func (c *codex) missing() string {
	if c.done {
		return ""
	}
	return "turn.completed"
}
