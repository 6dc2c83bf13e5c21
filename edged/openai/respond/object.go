package respond

import (
	"encoding/json"
)

// Object is the response as it stands.
func (r *Run) Object() json.RawMessage {
	if r.theirs != nil && r.status.Final() {
		return r.relayed()
	}
	q := r.q
	given := func(name, otherwise string) pair {
		if v, ok := q.fields[name]; ok {
			return pair{name, v}
		}
		return pair{name, json.RawMessage(otherwise)}
	}
	items := make([]json.RawMessage, 0, len(r.outputs))
	for _, o := range r.outputs {
		if o.told {
			items = append(items, o.json(r))
		}
	}
	return object(
		pair{"id", q.ID}, pair{"object", "response"}, pair{"created_at", r.created}, pair{"status", r.status}, pair{"background", q.Background},
		pair{"completed_at", r.completedAt()}, pair{"error", r.errorJSON()}, pair{"incomplete_details", r.incompleteJSON()}, given("instructions", "null"),
		given("max_output_tokens", "null"), given("max_tool_calls", "null"), pair{"model", r.model}, pair{"output", array(items)},
		given("parallel_tool_calls", "true"), given("previous_response_id", "null"), given("prompt_cache_key", "null"),
		pair{"reasoning", object(pair{"effort", orNull(q.effort)}, pair{"summary", orNull(q.summary)})},
		given("safety_identifier", "null"), given("service_tier", `"default"`), pair{"store", q.Store}, given("temperature", "1.0"),
		pair{"text", q.textJSON()}, given("tool_choice", `"auto"`), given("tools", "[]"), given("top_logprobs", "0"), given("top_p", "1.0"),
		given("truncation", `"disabled"`), pair{"usage", orNull(r.usage)}, given("user", "null"), given("metadata", "{}"),
	)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func (r *Run) completedAt() any {
	if r.status != Completed {
		return nil
	}
	return r.ended
}

func (r *Run) errorJSON() any {
	if r.status != Failed || r.failure == nil {
		return nil
	}
	return object(pair{"code", r.failure.Code}, pair{"message", r.failure.Message})
}

func (r *Run) incompleteJSON() any {
	if r.status != Incomplete {
		return nil
	}
	return object(pair{"reason", r.reason})
}

// textJSON is the text parameter with what it says by itself.
func (q *Request) textJSON() json.RawMessage {
	var t struct{ Format, Verbosity json.RawMessage }
	_ = json.Unmarshal(q.fields["text"], &t) // read before, or absent
	if len(t.Format) == 0 || string(t.Format) == "null" {
		t.Format = json.RawMessage(`{"type":"text"}`)
	}
	if len(t.Verbosity) == 0 || string(t.Verbosity) == "null" {
		t.Verbosity = json.RawMessage(`"medium"`)
	}
	return object(pair{"format", t.Format}, pair{"verbosity", t.Verbosity})
}

// readUsage is chat's usage in the words of responses.
func readUsage(raw json.RawMessage) json.RawMessage {
	var u struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		Total         int64 `json:"total_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	_ = json.Unmarshal(raw, &u) // what can't be read stays 0
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return object(
		pair{"input_tokens", u.Prompt}, pair{"input_tokens_details", object(pair{"cached_tokens", u.PromptDetails.Cached})},
		pair{"output_tokens", u.Completion}, pair{"output_tokens_details", object(pair{"reasoning_tokens", u.CompletionDetails.Reasoning})},
		pair{"total_tokens", u.Total},
	)
}
