package adminapi

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// WaiterList answers GET /queue.
type WaiterList struct {
	Pending int      `json:"pending"`
	Waiters []Waiter `json:"waiters"` // in the order of the queue
}

// Waiter is a request in the queue.
type Waiter struct {
	Position      int         `json:"position"` // from 1
	Request       string      `json:"request"`
	Model         string      `json:"model"`
	Class         string      `json:"class"` // normal, long
	Edge          string      `json:"edge"`  // that owns it; of a detached one the edge that did
	State         string      `json:"state"` // waiting, or detached: its edge's session ended, a retry takes it over
	EnqueuedIndex uint64      `json:"enqueued_index"`
	AgeMS         int64       `json:"age_ms"`         // cluster time since its first admission
	DeadlineInMS  *int64      `json:"deadline_in_ms"` // cluster time until it ends; null = it has no deadline
	Candidates    []Candidate `json:"candidates"`
}

// CanceledWaiter answers POST /queue/{id}/cancel: the request has left the queue, and its client is told canceled_by_operator.
type CanceledWaiter struct {
	Request string `json:"request"`
}

// CancelWaiter takes a request out of the queue, whichever edge's it is. One that runs is refused as not_waiting.
func (c *Client) CancelWaiter(ctx context.Context, id string) (*CanceledWaiter, error) {
	return ask[CanceledWaiter](ctx, c, call{method: http.MethodPost, path: "/queue/" + url.PathEscape(id) + "/cancel"})
}

// Candidate tells whether a waiter could have a provider now.
type Candidate struct {
	Provider     string `json:"provider"`
	Dispatchable bool   `json:"dispatchable"`
	Reason       string `json:"reason"` // why not: full, long_full, draining, offline, ...; "" if it is
}

// Request answers GET /requests/{id}: where a request is. Of one in being, either Waiter or Lease is set; one that is
// history has only Request, State and Story.
type Request struct {
	Request     string       `json:"request"`
	State       string       `json:"state"` // waiting, detached, held, fencing; ended
	Model       string       `json:"model"`
	Class       string       `json:"class"`
	InputTokens int64        `json:"input_tokens"` // estimated; 0 = unknown
	Enqueue     uint64       `json:"enqueue"`      // its place in the order of all requests
	EnqueuedAt  time.Time    `json:"enqueued_at"`
	Excluded    []string     `json:"excluded"` // providers that it fell over from
	Waiter      *Waiter      `json:"waiter"`
	Lease       *LeaseDetail `json:"lease"`
	Explanation *Explanation `json:"explanation"` // of a waiter
	Story       *Story       `json:"story"`       // null = not known
}
