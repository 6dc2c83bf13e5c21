package adminapi

import (
	"context"
	"net/url"
)

// ProviderDetail answers GET /providers/{id}.
type ProviderDetail struct {
	Provider
	Adapter     string   `json:"adapter"`                // id, on its node
	AdapterType string   `json:"adapter_type"`           // what it speaks: openai_compat, ollama, ...
	Models      []string `json:"models"`                 // served, of the configuration
	HealthPath  string   `json:"health_path,omitempty"`  // configured; "" with an interval = the one of the type
	HealthEvery int64    `json:"health_every,omitempty"` // ms; 0 = the backend is not asked, only runs tell
	Backend     *Backend `json:"backend"`                // what the backend tells of itself
}

// Backend is what a backend tells of itself, asked for by its node when somebody looks. It is for people: nothing is
// decided by it.
type Backend struct {
	Numbers map[string]float64 `json:"numbers"` // running, waiting, slots, kv_use (0 to 1), context_tokens, memory_bytes, ...
	Words   map[string]string  `json:"words"`   // version, status, ...
	Models  []string           `json:"models"`  // in memory, or served where that is not told
	Sources []string           `json:"sources"` // the pages that were read
	Error   string             `json:"error,omitempty"`
}

// Provider asks for one provider, and what its backend tells of itself.
func (c *Client) Provider(ctx context.Context, id string) (*ProviderDetail, error) {
	return get[ProviderDetail](ctx, c, "/providers/"+url.PathEscape(id))
}
