package adminapi

import "time"

// LeaseList answers GET /leases.
type LeaseList struct {
	Leases []Lease `json:"leases"` // by id
}

// Lease is a request that holds a slot.
type Lease struct {
	ID           uint64 `json:"id"`
	Request      string `json:"request"`
	Model        string `json:"model"`
	Provider     string `json:"provider"`
	Node         string `json:"node"`
	Class        string `json:"class"` // normal, long
	State        string `json:"state"` // held, or fencing: its link is gone and it still counts; of one that is history: returned
	Edge         string `json:"edge"`
	Session      uint64 `json:"session"`
	Generation   uint64 `json:"generation"`    // of the link that it was granted for
	GrantedIndex uint64 `json:"granted_index"` // of the log
	AgeMS        int64  `json:"age_ms"`        // cluster time since the grant
}

// LeaseDetail answers GET /leases/{id}: the lease and how it came to be.
type LeaseDetail struct {
	Lease
	Served        string    `json:"served"` // the model's name at the provider
	GrantedAt     time.Time `json:"granted_at"`
	Enqueue       uint64    `json:"enqueue"`        // its place in the order of all requests
	EnqueuedIndex uint64    `json:"enqueued_index"` // of the log
	EnqueuedAt    time.Time `json:"enqueued_at"`
	WaitedMS      int64     `json:"waited_ms"`    // cluster time from admission to this grant
	InputTokens   int64     `json:"input_tokens"` // estimated; 0 = unknown
	Excluded      []string  `json:"excluded"`     // providers that this request fell over from
	Story         *Story    `json:"story"`        // null = not known
}
