package adapter

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// heldBytesMax bounds a refusal that is read whole before anything of it is passed on.
const heldBytesMax = 64 << 10

// declaresNotRun reports whether a provider of this type may answer with this status to say that it did not run the
// request; saysNotRun then decides by the body. A plain openai_compat backend declares nothing: its 503 may come from
// a proxy that gave up on a run. So may vLLM's when its engine died over the request; its 429 comes from admission.
func declaresNotRun(providerType string, status int) bool {
	switch providerType {
	case "llamacpp", "ollama":
		return status == http.StatusServiceUnavailable
	case "lemonade":
		return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	case "vllm", "lmstudio":
		return status == http.StatusTooManyRequests
	default:
		return false
	}
}

// saysNotRun reports whether the body of such an answer is the refusal that the type declares.
func saysNotRun(providerType string, status int, body []byte) bool {
	if status == http.StatusTooManyRequests {
		return true
	}
	switch providerType {
	case "llamacpp", "lemonade": // Lemonade hands on what its llama-server says
		return errorType(body) == "unavailable_error"
	case "ollama": // its scheduler's queue is full
		return bytes.Contains(body, []byte("maximum pending requests exceeded"))
	default:
		return false
	}
}

// errorType returns error.type of an OpenAI error body, "" if there is none.
func errorType(body []byte) string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return e.Error.Type
}
