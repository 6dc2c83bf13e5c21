package anthropic

import (
	"encoding/json"
)

// Request is what a client asks of POST /v1/messages.
type Request struct {
	Model     string          `json:"model"`
	MaxTokens *int64          `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Messages  []message       `json:"messages"`
	Tools     []tool          `json:"tools"`
	Choice    *choice         `json:"tool_choice"`
	Stop      []string        `json:"stop_sequences"`
	Streamed  bool            `json:"stream"`

	Temperature json.RawMessage `json:"temperature"`
	TopP        json.RawMessage `json:"top_p"`
	TopK        json.RawMessage `json:"top_k"`

	Thinking     *thinking     `json:"thinking"`
	OutputConfig *outputConfig `json:"output_config"`
	OutputFormat *outputFormat `json:"output_format"` // its older place
	Metadata     struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      *bool           `json:"strict"`
}

type choice struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	OneByOne bool   `json:"disable_parallel_tool_use"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int64  `json:"budget_tokens"`
}

type outputConfig struct {
	Effort string        `json:"effort"`
	Format *outputFormat `json:"format"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// Problem is why a request can't be taken: the cause and the cure.
type Problem struct{ Param, Message string }

func (p *Problem) Error() string { return p.Message }

// Read reads a request. The body must be valid JSON.
func Read(body []byte) (*Request, *Problem) {
	q := &Request{}
	if err := json.Unmarshal(body, q); err != nil {
		return nil, unread(err)
	}
	switch {
	case q.MaxTokens == nil:
		return nil, &Problem{"max_tokens", "max_tokens: Field required. Say how many tokens the answer may have."}
	case *q.MaxTokens < 1:
		return nil, &Problem{"max_tokens", "max_tokens: Input should be greater than or equal to 1."}
	case len(q.Messages) == 0:
		return nil, &Problem{"messages", "messages: at least one message is required."}
	}
	return q, nil
}

func unread(err error) *Problem {
	p := &Problem{Message: "The body can't be read: " + err.Error() + "."}
	if e, ok := err.(*json.UnmarshalTypeError); ok { //nolint:errorlint // Unmarshal gives it as it is
		p.Param = e.Field
		p.Message = e.Field + ": a " + e.Value + " can't stand here."
	}
	return p
}
