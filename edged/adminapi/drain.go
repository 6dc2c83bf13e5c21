package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Drain is the body of POST /drain, and its answer: new leases are stopped (or allowed again) on a provider, or on all
// providers of a node. What runs goes on; what waits may go elsewhere. It is kept until it is taken back, over restarts.
type Drain struct {
	Node     string `json:"node,omitempty"`     // exactly one of the two in a request; of a provider's the answer has both
	Provider string `json:"provider,omitempty"` //
	On       bool   `json:"on"`
}

// Drain drains a node or a provider, or ends that.
func (c *Client) Drain(ctx context.Context, d Drain) (*Drain, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	return ask[Drain](ctx, c, call{method: http.MethodPost, path: "/drain", body: body})
}
