package chat

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// choice is one of an answer's choices on its way.
type choice struct {
	index    int
	opened   bool   // its role chunk has been rendered
	finish   string // "" as long as it runs
	lastTool int    // the highest tool call so far; -1 for none
	offset   int    // characters of text so far, for the logprobs of older completions

	text, think, refuse, args carry

	// What is collected where nothing is streamed.
	content, reasoning, refusal strings.Builder
	calls                       []ToolCall
	tokens                      []TokenLogprob
}

type wholeAnswer struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Created     int64   `json:"created"`
	Model       string  `json:"model"`
	Choices     []any   `json:"choices"`
	Usage       usage   `json:"usage"`
	Fingerprint *string `json:"system_fingerprint"`
}

type wholeChoice struct {
	Index    int          `json:"index"`
	Message  wholeMessage `json:"message"`
	Logprobs any          `json:"logprobs"`
	Finish   string       `json:"finish_reason"`
}

type wholeMessage struct {
	Role      string      `json:"role"`
	Content   *string     `json:"content"`
	Refusal   *string     `json:"refusal"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	ToolCalls []wholeTool `json:"tool_calls,omitempty"`
}

type wholeTool struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function wholeFunction `json:"function"`
}

type wholeFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wholeText struct {
	Text     string `json:"text"`
	Index    int    `json:"index"`
	Logprobs any    `json:"logprobs"`
	Finish   string `json:"finish_reason"`
}

// whole is the answer that is not streamed.
func (w *Writer) whole() any {
	a := wholeAnswer{ID: w.o.ID, Object: "chat.completion", Created: w.o.Created.Unix(), Model: w.o.Model, Usage: w.usage.shape(true)}
	if w.o.Fingerprint != "" {
		a.Fingerprint = &w.o.Fingerprint
	}
	if w.q.Endpoint == Completion {
		a.Object = "text_completion"
	}
	for _, c := range w.choices {
		if w.q.Endpoint == Completion {
			a.Choices = append(a.Choices, c.wholeText())
		} else {
			a.Choices = append(a.Choices, c.wholeChat())
		}
	}
	return a
}

func (c *choice) wholeText() wholeText {
	t := wholeText{Text: c.content.String(), Index: c.index, Finish: c.finish}
	if len(c.tokens) > 0 {
		t.Logprobs = textTokens(c.tokens, &c.offset)
	}
	return t
}

func (c *choice) wholeChat() wholeChoice {
	m := wholeMessage{Role: RoleAssistant, Reasoning: c.reasoning.String()}
	if text := c.content.String(); text != "" || len(c.calls) == 0 && c.refusal.Len() == 0 {
		m.Content = &text
	}
	if c.refusal.Len() > 0 {
		text := c.refusal.String()
		m.Refusal = &text
	}
	for _, call := range c.calls {
		m.ToolCalls = append(m.ToolCalls, wholeTool{call.ID, "function", wholeFunction{call.Name, call.Arguments}})
	}
	out := wholeChoice{Index: c.index, Message: m, Finish: c.finish}
	if len(c.tokens) > 0 {
		out.Logprobs = map[string]any{"content": chatTokens(c.tokens), "refusal": nil}
	}
	return out
}

// Embedding adds the vector of the next input, in the inputs' order.
func (w *Writer) Embedding(v []float32) error {
	w.vectors = append(w.vectors, v)
	return w.collected(12 * len(v))
}

type vector struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or base64 of little-endian float32s
}

type vectors struct {
	Object string   `json:"object"`
	Data   []vector `json:"data"`
	Model  string   `json:"model"`
	Usage  usage    `json:"usage"`
}

func (w *Writer) embeddings() any {
	out := vectors{Object: "list", Data: []vector{}, Model: w.o.Model, Usage: w.usage.shape(false)}
	for i, v := range w.vectors {
		e := vector{Object: "embedding", Index: i, Embedding: v}
		if w.q.EncodingFormat == "base64" {
			e.Embedding = packed(v)
		}
		out.Data = append(out.Data, e)
	}
	return out
}

func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// sendWhole answers v at once.
func (w *Writer) sendWhole(v any) error {
	w.begun = true
	w.err = answerJSON(w.a, http.StatusOK, mustJSON(v))
	return w.err
}

func answerJSON(a Answer, status int, body []byte) error {
	h := http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}
	if err := a.Head(status, h); err != nil {
		return err
	}
	return a.Data(body)
}
