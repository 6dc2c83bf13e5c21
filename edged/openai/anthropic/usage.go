package anthropic

import "encoding/json"

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// usage is what Anthropic calls it: what came out of a cache is not counted as input.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

// readUsage gives what a chat backend counted; nothing of what it can't be read of.
func readUsage(raw json.RawMessage) usage {
	var u chatUsage
	_ = json.Unmarshal(raw, &u) // what it has read by then stands
	return usage{Input: max(u.Prompt-u.Details.Cached, 0), Cached: u.Details.Cached, Output: u.Completion}
}
