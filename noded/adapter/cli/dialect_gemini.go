package cli

import (
	"encoding/json"

	"iop/noded/adapter/chat"
)

// gemini reads the output of "gemini --output-format stream-json": init, message (the prompt again, then pieces of the answer),
// tool_use and tool_result, then result with the usage.
type gemini struct {
	r     *reply
	after bool // a tool ran since the last text
	done  bool
}

func newGemini(r *reply) dialect { return &gemini{r: r} }

type geminiEvent struct {
	Type     string `json:"type"`
	Role     string `json:"role"`
	Content  string `json:"content"`
	Delta    bool   `json:"delta"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Status   string `json:"status"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

func (g *gemini) object(line []byte) error {
	var e geminiEvent
	if json.Unmarshal(line, &e) != nil {
		return nil // not an event
	}
	switch e.Type {
	case "message":
		return g.message(&e)
	case "tool_result":
		g.after = true
	case "error":
		if e.Severity != "warning" {
			g.r.trouble = e.Message
		}
	case "result":
		g.result(&e)
	}
	return nil
}

func (g *gemini) message(e *geminiEvent) error {
	if e.Role != "assistant" {
		return nil
	}
	if g.after || !e.Delta {
		g.after = false
		g.r.paragraph()
	}
	return g.r.text(e.Content)
}

func (g *gemini) result(e *geminiEvent) {
	g.done = true
	if s := e.Stats; s != nil {
		g.r.usage = &chat.Usage{Prompt: s.Input, Completion: s.Output, Cached: s.Cached}
	}
	if e.Status == "error" {
		g.r.failed = true
		if e.Error.Message != "" {
			g.r.trouble = e.Error.Message
		}
	}
}

func (g *gemini) missing() string {
	if g.done {
		return ""
	}
	return "result"
}
