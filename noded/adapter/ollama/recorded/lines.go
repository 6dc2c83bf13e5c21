// Package recorded has what a real Ollama 0.17.4 said, for tests that replay it: lines of its streams, and one whole
// answer. It holds no code. The adapter's own tests (noded/adapter/ollama) and e2e use it.
package recorded

// Lines of /api/chat, save where they say otherwise.
const (
	// Said1 is a piece of an answer.
	Said1 = `{"model":"tiny","created_at":"2026-11-29T18:11:45.639019973Z","message":{"role":"assistant","content":" é1"},"done":false}`
	// Said2 is the next piece.
	Said2 = `{"model":"tiny","created_at":"2026-11-29T18:11:45.645691783Z","message":{"role":"assistant","content":" 2"},"done":false}`
	// Thought is a piece of thinking.
	Thought = `{"model":"tiny","created_at":"2026-11-29T18:11:45.6Z","message":{"role":"assistant","content":"","thinking":"Hm."},"done":false}`
	// DoneStop is the end by itself.
	DoneStop = `{"model":"tiny","created_at":"2026-11-29T18:11:45.646893298Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":296562612,"load_duration":281808913,"prompt_eval_count":3,"prompt_eval_duration":2993580,"eval_count":2,"eval_duration":10184165}`
	// DoneLong is the end by num_predict.
	DoneLong = `{"model":"tiny","created_at":"2026-11-29T18:11:59.34831852Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","total_duration":481099146,"load_duration":281605617,"prompt_eval_count":3,"prompt_eval_duration":2953406,"eval_count":62,"eval_duration":193491156}`
	// Likely1 is a piece with its logprobs.
	Likely1 = `{"model":"tiny","created_at":"2026-11-29T18:11:45.6Z","message":{"role":"assistant","content":" 1"},"done":false,"logprobs":[{"token":" 1","logprob":-9.756175813890877e-7,"bytes":[32,49],"top_logprobs":[{"token":" 1","logprob":-9.756175813890877e-7,"bytes":[32,49]}]}]}`
	// Called is two tool calls.
	Called = `{"model":"tiny","created_at":"2026-11-29T18:11:45.6Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_a1","function":{"index":0,"name":"weather","arguments":{"city":"Paris"}}},{"id":"call_b2","function":{"index":1,"name":"now","arguments":{}}}]},"done":false}`
	// Wrote is a piece of /api/generate.
	Wrote = `{"model":"tiny","created_at":"2026-11-29T18:12:00.833813469Z","response":" 1","done":false}`
	// WroteDone is its end.
	WroteDone = `{"model":"tiny","created_at":"2026-11-29T18:12:00.833831105Z","response":"","done":true,"done_reason":"length","context":[655,656,268],"total_duration":4708876,"load_duration":2925374,"prompt_eval_count":3,"prompt_eval_duration":697673,"eval_count":1}`
	// Loaded is the answer to no messages: the model is loaded.
	Loaded = `{"model":"tiny","created_at":"2026-11-29T18:12:00.8Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}`
	// BrokeOff is the runner died within an answer.
	BrokeOff = `{"error":"an error was encountered while running the model: CUDA error"}`
	// Shown is what /api/show tells of a model without vision or tools, save its text, details and tensors.
	Shown = `{"template":"{{ .Prompt }}","capabilities":["completion"],"modified_at":"2026-11-29T18:11:45.32537195Z"}`

	// TooLongBody is what is said to a prompt beyond the context, with status 400.
	TooLongBody = `{"error":"the input length exceeds the context length"}`
	// TooLong is that answer whole, with its head.
	TooLong = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n37\r\n" + TooLongBody + "\r\n0\r\n\r\n"
)
