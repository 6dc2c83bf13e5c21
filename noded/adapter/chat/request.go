package chat

import "encoding/json"

// Endpoint is what a request asks for.
type Endpoint uint8

// The endpoints.
const (
	Chat       Endpoint = iota + 1 // /v1/chat/completions
	Completion                     // /v1/completions, the older one
	Embedding                      // /v1/embeddings
)

// Request is one request, whichever endpoint it came to. Parameters that are absent or null are nil or zero.
type Request struct {
	Endpoint Endpoint
	Model    string    // the served name
	Messages []Message // of Chat, at least one
	Prompts  []Input   // of Completion, at least one
	Inputs   []Input   // of Embedding, at least one

	Tools             []Tool
	ToolChoice        ToolChoice
	ParallelToolCalls *bool

	Stream       bool
	IncludeUsage bool // stream_options.include_usage
	N            int  // choices, at least 1
	BestOf       int  // of Completion, at least N

	MaxTokens        *int64 // max_completion_tokens, else max_tokens; at least 1 (of Completion 0)
	Temperature      *float64
	TopP             *float64
	FrequencyPenalty *float64
	PresencePenalty  *float64
	Seed             *int64
	Stop             []string
	Format           *Format // nil: text
	Effort           string  // reasoning_effort: none, minimal, low, medium, high, xhigh; "" if not given
	Logprobs         bool
	TopLogprobs      int  // 0 to 20
	Echo             bool // of Completion

	EncodingFormat string // of Embedding: float or base64; "" is float
	Dimensions     int    // of Embedding; 0 if not given

	// Extra is everything else at the top of the body, as it was written: top_k, user, keep_alive.
	Extra map[string]json.RawMessage
}

// Message is one turn of a conversation.
type Message struct {
	Role       string // system, developer, user, assistant, tool or function
	Name       string
	Parts      []Part // empty if content is null or absent
	ToolCalls  []ToolCall
	ToolCallID string // of role tool
	Reasoning  string // reasoning_content of an assistant, or reasoning
	Refusal    string
}

// Text joins the text parts of a message.
func (m Message) Text() string {
	var text string
	for _, p := range m.Parts {
		if p.Kind == PartText {
			text += p.Text
		}
	}
	return text
}

// PartKind is what a part of a message is.
type PartKind uint8

// The kinds of parts.
const (
	PartText  PartKind = iota + 1
	PartImage          // URL, or MediaType and Data of a data: URL
	PartAudio          // MediaType and Data
	PartFile           // Text is its name; Data if it came along, else URL is its id
)

// Part is a piece of a message.
type Part struct {
	Kind      PartKind
	Text      string
	URL       string // http or https; "" if Data is here
	MediaType string // image/png
	Data      []byte // decoded
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema; nil: takes none
	Strict      bool
}

// ToolChoice says whether the model is to call a tool.
type ToolChoice struct {
	Mode string // auto, none, required or function; "" if not given
	Name string // of Mode function
}

// ToolCall is a call that an assistant made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // JSON text, as the model wrote it: it may be broken
}

// Format is the shape that an answer must have.
type Format struct {
	Kind   string // json_object or json_schema
	Name   string
	Schema json.RawMessage // of json_schema
	Strict bool
}

// Input is a text, or a text that is tokens already.
type Input struct {
	Text   string
	Tokens []int64 // nil for a text
}
