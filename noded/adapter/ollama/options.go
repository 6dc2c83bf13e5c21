package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"

	"iop/noded/adapter/chat"
)

// generation is what a request to /api/chat or /api/generate says of how to generate. nth is the number of the choice,
// from 0: with a seed each has its own, else all would be the same.
func (r *run) generation(nth int) generation {
	q := r.q
	options, _ := extraOptions(q)
	set := func(name string, v *float64) {
		if v != nil {
			options[name] = *v
		}
	}
	set("temperature", q.Temperature)
	set("top_p", q.TopP)
	set("frequency_penalty", q.FrequencyPenalty)
	set("presence_penalty", q.PresencePenalty)
	if q.Seed != nil {
		options["seed"] = *q.Seed + int64(nth)
	}
	if len(q.Stop) > 0 {
		options["stop"] = q.Stop
	}
	if q.MaxTokens != nil {
		options["num_predict"] = *q.MaxTokens
	}
	r.setContext(options)
	g := generation{
		Stream: true, KeepAlive: r.ollama.keepAlive, Options: options, Think: r.think,
		Logprobs: q.Logprobs, TopLogprobs: q.TopLogprobs,
	}
	switch {
	case q.Format == nil:
	case q.Format.Kind == "json_schema":
		g.Format = q.Format.Schema
	default:
		g.Format = json.RawMessage(`"json"`)
	}
	return g
}

// setContext says how large the context of the loaded model is to be: the adapter's num_ctx, else the provider's window.
func (r *run) setContext(options map[string]any) {
	if n := r.numCtx(); n > 0 {
		options["num_ctx"] = n
	}
}

func (r *run) numCtx() int64 {
	if r.ollama.numCtx > 0 {
		return r.ollama.numCtx
	}
	return r.call.Window
}

// extraOptions are the options that OpenAI does not have, but servers and clients do.
func extraOptions(q *chat.Request) (map[string]any, *chat.Problem) {
	options := map[string]any{}
	for name, to := range map[string]string{
		"top_k": "top_k", "min_p": "min_p", "typical_p": "typical_p", "repeat_penalty": "repeat_penalty",
		"repetition_penalty": "repeat_penalty", "repeat_last_n": "repeat_last_n",
	} {
		raw, ok := q.Extra[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var v float64
		if json.Unmarshal(raw, &v) != nil {
			return nil, &chat.Problem{
				Status: http.StatusBadRequest, Code: "invalid_type", Param: name,
				Message: fmt.Sprintf("Invalid type for '%s': expected a number.", name),
			}
		}
		options[to] = v
	}
	return options, nil
}

// wantedThink is what a request says of thinking; nil: nothing. An effort is a level, which only some models take.
func wantedThink(q *chat.Request, otherwise any) any {
	if q.Endpoint != chat.Chat {
		return nil
	}
	switch q.Effort {
	case "":
		return otherwise
	case "none":
		return false
	case "minimal", "low":
		return "low"
	case "medium":
		return "medium"
	default:
		return "high"
	}
}
