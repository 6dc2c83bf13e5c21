package respond

import (
	"encoding/json"
	"maps"
	"slices"
)

// Request is a request for a response.
type Request struct {
	ID         string // that the response will have
	Model      string
	Stream     bool
	Background bool
	Store      bool
	Previous   string            // id of the response that it goes on from; "" = none
	Items      []json.RawMessage // its input as items, each with an id

	fields  map[string]json.RawMessage
	tools   toolbox
	format  json.RawMessage // response_format of chat; nil = none
	effort  json.RawMessage // reasoning.effort; nil = not said
	summary json.RawMessage // reasoning.summary; nil = not said
	likely  bool            // logprobs are wanted
}

// ours are the parameters that mean something here, or at OpenAI only, and so are not passed on by their names. All
// that is not known is passed on, as with the other routes.
var ours = map[string]bool{
	"model": true, "input": true, "instructions": true, "tools": true, "tool_choice": true, "parallel_tool_calls": true,
	"text": true, "reasoning": true, "max_output_tokens": true, "max_tool_calls": true, "temperature": true, "top_p": true,
	"top_logprobs": true, "truncation": true, "include": true, "metadata": true, "store": true, "previous_response_id": true,
	"background": true, "stream": true, "stream_options": true, "prompt_cache_retention": true, "client_metadata": true,
	"conversation": true, "prompt": true, "context_management": true, "messages": true, "response_format": true,
	"max_tokens": true, "max_completion_tokens": true, "n": true, "logprobs": true, "moderation": true,
}

// Read reads a request's body, which must be a JSON object. id gives the one that the response will have.
func Read(body []byte, id func(background bool) string) (*Request, *Problem) {
	q := &Request{Store: true}
	if err := json.Unmarshal(body, &q.fields); err != nil {
		return nil, &Problem{Code: CodeType, Message: "The body can't be read: " + err.Error() + "."}
	}
	if p := check(q.fields); p != nil {
		return nil, p
	}
	q.Model = text(q.fields["model"])
	q.Stream = string(q.fields["stream"]) == "true"
	q.Background = string(q.fields["background"]) == "true"
	q.Store = string(q.fields["store"]) != "false"
	q.Previous = text(q.fields["previous_response_id"])
	q.ID = id(q.Background)
	for _, read := range []func() *Problem{q.refuse, q.readTools, q.readText, q.readReasoning, q.readInclude, q.readMetadata, q.readInput} {
		if p := read(); p != nil {
			return nil, p
		}
	}
	return q, nil
}

// refuse names what this gateway does not have.
func (q *Request) refuse() *Problem {
	for _, name := range []string{"conversation", "prompt"} {
		if raw, ok := q.fields[name]; ok && string(raw) != "null" {
			return unsupported(name, "'"+name+"' is not supported here. Send the items themselves as 'input', or go on from a response with 'previous_response_id'.")
		}
	}
	if q.Background && !q.Store {
		return &Problem{Code: CodeValue, Param: "store", Message: "A background response is stored: its result could not be fetched otherwise. Leave 'store' out, or set 'background' to false."}
	}
	return nil
}

// formatKinds are the types of text.format.
var formatKinds = []string{"text", "json_object", "json_schema"}

func (q *Request) readText() *Problem {
	raw, ok := q.fields["text"]
	if !ok {
		return nil
	}
	var t struct {
		Format    json.RawMessage
		Verbosity *string
	}
	if p := decode("text", raw, &t); p != nil || len(t.Format) == 0 || string(t.Format) == "null" {
		return p
	}
	var f struct {
		Type, Name, Description string
		Schema                  json.RawMessage
		Strict                  *bool
	}
	if p := decode("text.format", t.Format, &f); p != nil {
		return p
	}
	switch {
	case f.Type == "text":
	case f.Type == "json_object":
		q.format = json.RawMessage(`{"type":"json_object"}`)
	case f.Type != "json_schema":
		return wrongValue("text.format.type", f.Type, formatKinds)
	case f.Name == "":
		return missing("text.format.name")
	case len(f.Schema) == 0 || f.Schema[0] != '{':
		return missing("text.format.schema")
	default:
		b := append([]byte(`{"type":"json_schema","json_schema":{"name":`), quote(f.Name)...)
		if f.Description != "" {
			b = append(append(b, `,"description":`...), quote(f.Description)...)
		}
		if f.Strict != nil {
			b = append(append(b, `,"strict":`...), encode(f.Strict)...)
		}
		q.format = append(append(append(b, `,"schema":`...), f.Schema...), "}}"...)
	}
	return nil
}

func (q *Request) readReasoning() *Problem {
	raw, ok := q.fields["reasoning"]
	if !ok {
		return nil
	}
	var r struct{ Effort, Summary, GenerateSummary *string }
	if p := decode("reasoning", raw, &r); p != nil {
		return p
	}
	if r.Effort != nil {
		q.effort = quote(*r.Effort)
	}
	if r.Summary != nil && *r.Summary != "none" {
		if kinds := []string{"auto", "concise", "detailed", "none"}; !slices.Contains(kinds, *r.Summary) {
			return wrongValue("reasoning.summary", *r.Summary, kinds)
		}
		q.summary = quote(*r.Summary)
	}
	return nil
}

func (q *Request) readInclude() *Problem {
	_, q.likely = q.fields["top_logprobs"]
	raw, ok := q.fields["include"]
	if !ok {
		return nil
	}
	var list []string
	if p := decode("include", raw, &list); p != nil {
		return p
	}
	q.likely = q.likely || slices.Contains(list, "message.output_text.logprobs")
	return nil
}

func (q *Request) readMetadata() *Problem {
	raw, ok := q.fields["metadata"]
	if !ok {
		return nil
	}
	var m map[string]string
	if p := decode("metadata", raw, &m); p != nil {
		return p
	}
	if len(m) > 16 {
		return &Problem{Code: CodeValue, Param: "metadata", Message: "Invalid 'metadata': too many properties. Expected at most 16."}
	}
	return nil
}

// passed are the names of the parameters that go on as they are, sorted.
func (q *Request) passed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(q.fields)), func(name string) bool {
		return ours[name] || string(q.fields[name]) == "null"
	})
}
