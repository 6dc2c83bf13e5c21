package adapter

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// demoRequest is what the demo backend reads of a request; the rest is ignored.
type demoRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt json.RawMessage `json:"prompt"`
	Input  json.RawMessage `json:"input"`

	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	BestOf              *int            `json:"best_of"`
	Stop                json.RawMessage `json:"stop"`

	EncodingFormat string `json:"encoding_format"`
	Dimensions     *int   `json:"dimensions"`
}

// parse reads a body and checks what all kinds of request share.
func (d *Demo) parse(body []byte) (*demoRequest, error) {
	var r demoRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, refuse("", "invalid_json", "the body is not the JSON that is expected: %v", err)
	}
	if r.Model == "" {
		return nil, refuse("model", "missing_required_parameter", "you must provide a model")
	}
	if len(d.models) > 0 && !slices.Contains(d.models, r.Model) {
		return nil, &demoError{
			status:  http.StatusNotFound,
			Message: "the demo provider does not serve the model " + r.Model,
			Type:    "invalid_request_error",
			Code:    "model_not_found",
		}
	}
	for name, n := range map[string]*int{"n": r.N, "best_of": r.BestOf} {
		if n != nil && *n != 1 {
			return nil, refuse(name, "unsupported_value", "the demo provider gives one choice; leave %s out or set it to 1", name)
		}
	}
	if limit := r.maxTokens(); limit != nil && *limit < 1 {
		return nil, refuse("max_tokens", "invalid_value", "max_tokens must be at least 1")
	}
	return &r, nil
}

// maxTokens is the bound on the answer, nil for none.
func (r *demoRequest) maxTokens() *int {
	if r.MaxCompletionTokens != nil {
		return r.MaxCompletionTokens
	}
	return r.MaxTokens
}

// stops gives the stop sequences: one string, or a list of them.
func (r *demoRequest) stops() []string {
	var one string
	var many []string
	if json.Unmarshal(r.Stop, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(r.Stop, &many) // anything else is no stop
	return many
}

// promptSize counts what came in.
type promptSize struct {
	words int
	parts int // messages, or 1
}

// contentWords counts the words of a message's content: a string, or a list of parts of which some have text.
func contentWords(raw json.RawMessage) int {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return wordCount(text)
	}
	var parts []struct {
		Text string `json:"text"`
	}
	n := 0
	if json.Unmarshal(raw, &parts) == nil {
		for _, p := range parts {
			n += wordCount(p.Text)
		}
	}
	return n
}

// texts reads a prompt or an input: a string, a list of strings, a list of tokens, or a list of such lists. Tokens
// become words. It is nil if raw is none of these.
func texts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && len(raw) > 0 && raw[0] == '"' {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many
	}
	var tokens []json.Number
	if json.Unmarshal(raw, &tokens) == nil {
		return []string{joinTokens(tokens)}
	}
	var lists [][]json.Number
	if json.Unmarshal(raw, &lists) != nil {
		return nil
	}
	joined := []string{}
	for _, l := range lists {
		joined = append(joined, joinTokens(l))
	}
	return joined
}

func joinTokens(tokens []json.Number) string {
	words := make([]string, len(tokens))
	for i, t := range tokens {
		words[i] = t.String()
	}
	return strings.Join(words, " ")
}
