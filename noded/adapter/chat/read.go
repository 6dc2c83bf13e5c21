package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
)

const (
	choicesMax = 128 // n, as at OpenAI
	stopsMax   = 64  // stop sequences; OpenAI takes 4, local servers more
)

// Read reads the body of a POST to path, which may have a query. What stays JSON in the request (schemas, Extra) is part of
// the body, not a copy. The problem is a 400 that names the parameter, or a 404
// if the path is none of the endpoints.
func Read(path string, body []byte) (*Request, *Problem) {
	q := &Request{}
	switch path, _, _ = strings.Cut(path, "?"); path {
	case "/v1/chat/completions":
		q.Endpoint = Chat
	case "/v1/completions":
		q.Endpoint = Completion
	case "/v1/embeddings":
		q.Endpoint = Embedding
	default:
		return nil, &Problem{
			Status: http.StatusNotFound, Code: "not_found", Message: "this provider has no " + path,
			Cure: "it serves chat completions, completions and embeddings",
		}
	}
	var problem *Problem
	body = bytes.TrimLeft(body, " \t\r\n")
	if !json.Valid(body) || body[0] != '{' {
		return nil, unparsed(body)
	}
	f := fields{problem: &problem, raw: members(body)}
	q.read(f)
	if problem != nil {
		return nil, problem
	}
	q.Extra = f.raw
	return q, nil
}

// unparsed is the problem of a body that is no JSON object.
func unparsed(body []byte) *Problem {
	p := &Problem{Status: http.StatusBadRequest, Code: "invalid_json", Message: "the body of the request must be a JSON object"}
	var any json.RawMessage
	if err := json.Unmarshal(body, &any); err != nil {
		p.Message = fmt.Sprintf("the body of the request is no JSON: %v", err)
	}
	return p
}

func (q *Request) read(f fields) {
	q.Model = f.needed("model")
	switch q.Endpoint {
	case Chat:
		q.readChat(f)
	case Completion:
		q.readCompletion(f)
	case Embedding:
		q.readEmbedding(f)
	}
}

func (q *Request) readChat(f fields) {
	q.readMessages(f)
	q.readTools(f)
	q.readGeneration(f)
	q.readFormat(f)
	q.Effort = f.oneOf("reasoning_effort", "none", "minimal", "low", "medium", "high", "xhigh", "max")
	q.Logprobs = f.yes("logprobs")
	if n := f.integer("top_logprobs", 0, 20); n != nil {
		q.TopLogprobs = int(*n)
		if *n > 0 && !q.Logprobs {
			f.refuse("top_logprobs", "invalid_value", "'top_logprobs' is only allowed when 'logprobs' is true.")
		}
	}
	least := int64(1)
	q.MaxTokens = f.integer("max_tokens", least, math.MaxInt64)
	if n := f.integer("max_completion_tokens", least, math.MaxInt64); n != nil {
		q.MaxTokens = n
	}
	for _, old := range []string{"functions", "function_call"} {
		if _, given := f.take(old); given {
			f.refuse(old, "unsupported_parameter", "Unsupported parameter: '%s' is not supported by this provider. Use 'tools' instead.", old)
		}
	}
}

// readGeneration reads what chat and the older completions share.
func (q *Request) readGeneration(f fields) {
	q.Stream = f.yes("stream")
	if o, ok := f.object("stream_options"); ok {
		q.IncludeUsage = q.Stream && o.yes("include_usage")
	}
	q.N = 1
	if n := f.integer("n", 1, choicesMax); n != nil {
		q.N = int(*n)
	}
	q.Temperature = f.number("temperature", 0, 2)
	q.TopP = f.number("top_p", 0, 1)
	q.FrequencyPenalty = f.number("frequency_penalty", -2, 2)
	q.PresencePenalty = f.number("presence_penalty", -2, 2)
	q.Seed = f.integer("seed", math.MinInt64, math.MaxInt64)
	q.readStop(f)
	if raw, ok := f.raw["logit_bias"]; ok && !isNull(raw) {
		f.asObject("logit_bias", raw)
	}
	if raw, ok := f.raw["user"]; ok && !isNull(raw) {
		f.asText("user", raw)
	}
}

// readStop reads one stop sequence, or a list of them. Empty ones stop nothing and are dropped.
func (q *Request) readStop(f fields) {
	raw, ok := f.take("stop")
	if !ok {
		return
	}
	if raw[0] == '"' {
		if s := f.asText("stop", raw); s != "" {
			q.Stop = []string{s}
		}
		return
	}
	if raw[0] != '[' {
		f.mistyped("stop", "a string or an array of strings", raw)
		return
	}
	items, _ := f.asList("stop", raw)
	if len(items) > stopsMax {
		f.refuse("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", stopsMax, len(items))
		return
	}
	for i, raw := range items {
		if s := f.asText(item("stop", i), raw); s != "" {
			q.Stop = append(q.Stop, s)
		}
	}
}

// readFormat reads response_format.
func (q *Request) readFormat(f fields) {
	o, ok := f.object("response_format")
	if !ok {
		return
	}
	switch kind := o.oneOf("type", "text", "json_object", "json_schema"); kind {
	case "":
		o.missing(o.path("type"))
	case "json_object":
		q.Format = &Format{Kind: kind}
	case "json_schema":
		s, ok := o.object("json_schema")
		if !ok {
			o.missing(o.path("json_schema"))
			return
		}
		q.Format = &Format{Kind: kind, Name: s.needed("name"), Schema: s.schema("schema"), Strict: s.yes("strict")}
		if q.Format.Schema == nil {
			s.missing(s.path("schema"))
		}
	}
}
