package cli

import (
	"encoding/json"
	"strings"

	"iop/noded/adapter/chat"
)

// claude reads the output of "claude -p --output-format stream-json --verbose": system, assistant with each whole message,
// user with the results of its own tools, then result with the usage. With --include-partial-messages, stream_event carries
// the pieces of each message before its whole comes.
type claude struct {
	r       *reply
	message string // id of the message whose pieces came last
	done    bool
}

func newClaude(r *reply) dialect { return &claude{r: r} }

type claudeEvent struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	Parent  *string `json:"parent_tool_use_id"` // of a helper that it started
	Event   struct {
		Type    string `json:"type"`
		Message struct {
			ID string `json:"id"`
		} `json:"message"`
		Delta struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
			Reason   string `json:"stop_reason"`
		} `json:"delta"`
	} `json:"event"`
	Error   string `json:"error"` // of an assistant message that is none, but tells of a failure
	Message struct {
		ID      string          `json:"id"`
		Reason  string          `json:"stop_reason"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	IsError bool            `json:"is_error"`
	Result  json.RawMessage `json:"result"`
	Usage   *claudeUsage    `json:"usage"`
}

type claudeUsage struct {
	Input        int64 `json:"input_tokens"`
	CacheWritten int64 `json:"cache_creation_input_tokens"`
	CacheRead    int64 `json:"cache_read_input_tokens"`
	Output       int64 `json:"output_tokens"`
}

func (c *claude) object(line []byte) error {
	var e claudeEvent
	if json.Unmarshal(line, &e) != nil || e.Parent != nil {
		return nil // not an event, or not of the answer
	}
	switch e.Type {
	case "stream_event":
		return c.piece(&e)
	case "assistant":
		return c.whole(&e)
	case "result":
		return c.result(&e)
	}
	return nil
}

// piece takes a part of a message.
func (c *claude) piece(e *claudeEvent) error {
	switch d := e.Event.Delta; {
	case e.Event.Type == "message_start":
		c.message = e.Event.Message.ID
		c.r.paragraph()
	case d.Type == "text_delta":
		return c.r.text(d.Text)
	case d.Type == "thinking_delta":
		return c.r.out.Reasoning(d.Thinking)
	case e.Event.Type == "message_delta":
		c.reason(d.Reason)
	}
	return nil
}

// whole takes a message, unless its pieces have come or it is a failure's text, which result has as well.
func (c *claude) whole(e *claudeEvent) error {
	if e.Error != "" || e.Message.ID != "" && e.Message.ID == c.message {
		return nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	}
	if json.Unmarshal(e.Message.Content, &parts) != nil {
		return nil // not in parts
	}
	c.reason(e.Message.Reason)
	for _, p := range parts {
		var err error
		switch p.Type {
		case "text":
			c.r.paragraph()
			err = c.r.text(p.Text)
		case "thinking":
			err = c.r.out.Reasoning(p.Thinking)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *claude) reason(r string) {
	if r == "" {
		return
	}
	c.r.finish = map[string]string{"max_tokens": chat.FinishLength, "refusal": chat.FinishFilter}[r]
}

// result takes the end. Its text is the last message's; it is the answer only if no message came.
func (c *claude) result(e *claudeEvent) error {
	c.done = true
	if u := e.Usage; u != nil {
		c.r.usage = &chat.Usage{Prompt: u.Input + u.CacheWritten + u.CacheRead, Completion: u.Output, Cached: u.CacheRead}
	}
	var text string
	if json.Unmarshal(e.Result, &text) != nil {
		text = ""
	}
	if e.IsError || strings.HasPrefix(e.Subtype, "error") {
		c.r.trouble, c.r.failed = text, true
		if text == "" {
			c.r.trouble = e.Subtype
		}
		return nil
	}
	if c.r.spoke {
		return nil
	}
	return c.r.text(text)
}

func (c *claude) missing() string {
	if c.done {
		return ""
	}
	return "result"
}
