package adapter

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Kind is what is known of a type of backend beside the API that it speaks. The table is kinds; a type that is not there
// is the zero Kind, of which nothing is assumed.
type Kind struct {
	// Health is the path of a health check that names none; "" asks only whether a connection is taken.
	Health string
	// refusals are the answers by which it says that it did not run a request.
	refusals []refusal
	// sources are what it tells of itself: see Glance.
	sources []source
}

// refusal is an answer that means "not run". It must be provable: an edge sends such a run elsewhere.
type refusal struct {
	status int
	says   func(body []byte) bool
}

// KindOf returns what is known of a provider's type.
func KindOf(providerType string) Kind { return kinds[providerType] }

// kinds is the one table. A plain openai_compat backend declares nothing: its 429 or 503 may come from a proxy that gave
// up on a run. So are seulgivibe_claude and seulgivibe_openai, gateways to somebody else's servers.
var kinds = map[string]Kind{
	"openai_compat":     {Health: pathModels, sources: []source{{pathModels, readModels}}},
	"seulgivibe_claude": {Health: pathModels, sources: []source{{pathModels, readModels}}},
	"seulgivibe_openai": {Health: pathModels, sources: []source{{pathModels, readModels}}},
	"vllm": {
		Health: "/health", // 503 when the engine is dead
		refusals: []refusal{
			{http.StatusTooManyRequests, always}, // from admission, before the engine
			// Its queue is bounded by --max-num-queued-reqs and --max-num-queued-tokens, both checked before the engine has the
			// request. An engine that died over a request answers 503 as well, in other words.
			{http.StatusServiceUnavailable, queueIsFull},
		},
		sources: []source{{"/metrics", readVLLM}, {"/version", readVersion}, {pathModels, readModels}},
	},
	"llamacpp": {
		Health: "/health", // 503 while the model is being loaded
		// While loading, and with fail_on_no_slot when no slot is free. Its other 503s have other types.
		refusals: []refusal{{http.StatusServiceUnavailable, isUnavailable}},
		sources:  []source{{"/props", readProps}, {"/slots", readSlots}, {"/metrics", readLlama}},
	},
	"lemonade": {
		Health: "/v1/health",
		refusals: []refusal{
			{http.StatusServiceUnavailable, isUnavailable}, // it hands on what its llama-server says
			{http.StatusTooManyRequests, always},           // its own, in front of the servers that it starts
		},
		sources: []source{{"/v1/health", readLemonade}},
	},
	"lmstudio": {
		Health:   pathModels, // it has no health route
		refusals: []refusal{{http.StatusTooManyRequests, always}},
		sources:  []source{{"/api/v0/models", readLMStudio}},
	},
	// mlx_lm.server answers 503 when the GPU's memory ran out in the middle of a run: that is no refusal. It has no queue
	// that refuses.
	"mlx": {Health: "/health", sources: []source{{pathModels, readModels}}},
	"ollama": {
		Health: "/api/version", // touches no model
		// Its scheduler's queue is full (OLLAMA_MAX_QUEUE); a request in there has no runner yet.
		refusals: []refusal{{http.StatusServiceUnavailable, pendingExceeded}},
		sources:  []source{{"/api/ps", readPS}, {"/api/version", readVersion}},
	},
}

const pathModels = "/v1/models"

// heldBytesMax bounds a refusal that is read whole before anything of it is passed on.
const heldBytesMax = 64 << 10

// declaresNotRun reports whether a provider of this type may answer with this status to say that it did not run the
// request; saysNotRun then decides by the body.
func declaresNotRun(providerType string, status int) bool {
	for _, r := range kinds[providerType].refusals {
		if r.status == status {
			return true
		}
	}
	return false
}

// saysNotRun reports whether the body of such an answer is the refusal that the type declares.
func saysNotRun(providerType string, status int, body []byte) bool {
	for _, r := range kinds[providerType].refusals {
		if r.status == status && r.says(body) {
			return true
		}
	}
	return false
}

func always([]byte) bool { return true }

func isUnavailable(body []byte) bool { return readError(body).Type == "unavailable_error" }

func queueIsFull(body []byte) bool {
	e := readError(body)
	return e.Type == "QueueOverflowError" || bytes.HasPrefix([]byte(e.Message), []byte("Request queue"))
}

func pendingExceeded(body []byte) bool {
	return bytes.Contains(body, []byte("maximum pending requests exceeded"))
}

// apiError is what an OpenAI-compatible server says was wrong.
type apiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// readError reads an OpenAI error body, or the flat one of older vLLM; the zero value if it is neither.
func readError(body []byte) apiError {
	var e struct {
		apiError
		Error *apiError `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &e) != nil:
		return apiError{}
	case e.Error != nil:
		return *e.Error
	}
	return e.apiError
}
