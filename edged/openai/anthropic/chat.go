package anthropic

import (
	"encoding/json"
	"strconv"
)

// chatRequest is a request for a chat completion, as far as it is made here.
type chatRequest struct {
	Model       string          `json:"model"`
	Messages    []chatMessage   `json:"messages"`
	MaxTokens   *int64          `json:"max_tokens,omitempty"`
	Temperature json.RawMessage `json:"temperature,omitempty"`
	TopP        json.RawMessage `json:"top_p,omitempty"`
	TopK        json.RawMessage `json:"top_k,omitempty"`
	Stop        []string        `json:"stop,omitempty"`
	Tools       []chatTool      `json:"tools,omitempty"`
	Choice      any             `json:"tool_choice,omitempty"`
	Parallel    *bool           `json:"parallel_tool_calls,omitempty"`
	Format      any             `json:"response_format,omitempty"`
	Effort      string          `json:"reasoning_effort,omitempty"`
	User        string          `json:"user,omitempty"`
	Stream      bool            `json:"stream,omitempty"`
	Options     any             `json:"stream_options,omitempty"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      *bool           `json:"strict,omitempty"`
	} `json:"function"`
}

// Chat gives the body of the chat request that asks for the same. A stream also asks for the usage.
func (q *Request) Chat() ([]byte, *Problem) {
	c := chatRequest{
		Model: q.Model, MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, Stop: q.Stop,
		User: q.Metadata.UserID, Effort: q.effort(), Stream: q.Streamed,
	}
	if q.Streamed {
		c.Options = map[string]bool{"include_usage": true}
	}
	if p := q.conversation(&c); p != nil {
		return nil, p
	}
	if p := q.tools(&c); p != nil {
		return nil, p
	}
	if p := q.format(&c); p != nil {
		return nil, p
	}
	body, err := json.Marshal(&c)
	if err != nil {
		return nil, unread(err)
	}
	return body, nil
}

// Budgets of thinking up to which the effort is called low and medium.
const (
	budgetLow    = 2048
	budgetMedium = 8192
)

// effort is how much is to be thought, in chat's words; "" = as the model does by itself.
func (q *Request) effort() string {
	if q.OutputConfig != nil && q.OutputConfig.Effort != "" {
		switch e := q.OutputConfig.Effort; e {
		case "low", "medium":
			return e
		}
		return "high"
	}
	if q.Thinking == nil || q.Thinking.Type != "enabled" {
		return ""
	}
	switch b := q.Thinking.Budget; {
	case b <= budgetLow:
		return "low"
	case b <= budgetMedium:
		return "medium"
	}
	return "high"
}

func (q *Request) tools(c *chatRequest) *Problem {
	for i, t := range q.Tools {
		if len(t.Schema) == 0 {
			at := "tools." + strconv.Itoa(i)
			return &Problem{at, at + ": " + strconv.Quote(t.Name) + " of type " + strconv.Quote(t.Type) +
				" is run by its vendor, which is not asked here. Leave it out, or declare a tool with an input_schema and run it yourself."}
		}
		out := chatTool{Type: "function"}
		out.Function.Name, out.Function.Description, out.Function.Parameters, out.Function.Strict = t.Name, t.Description, t.Schema, t.Strict
		c.Tools = append(c.Tools, out)
	}
	if q.Choice == nil || len(c.Tools) == 0 {
		return nil
	}
	switch q.Choice.Type {
	case "auto", "none":
		c.Choice = q.Choice.Type
	case "any":
		c.Choice = "required"
	case "tool":
		c.Choice = map[string]any{"type": "function", "function": map[string]string{"name": q.Choice.Name}}
	default:
		return &Problem{"tool_choice", "tool_choice.type: Input should be auto, any, tool or none."}
	}
	if q.Choice.OneByOne {
		c.Parallel = new(bool)
	}
	return nil
}

func (q *Request) format(c *chatRequest) *Problem {
	f := q.OutputFormat
	if q.OutputConfig != nil && q.OutputConfig.Format != nil {
		f = q.OutputConfig.Format
	}
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema" || len(f.Schema) == 0:
		return &Problem{"output_config.format", "output_config.format: Input should be a json_schema with a schema."}
	}
	c.Format = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": f.Schema, "strict": true}}
	return nil
}
