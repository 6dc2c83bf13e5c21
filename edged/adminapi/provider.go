package adminapi

// ProviderList answers GET /providers.
type ProviderList struct {
	Providers []Provider `json:"providers"` // by id
}

// Provider is a provider at one moment. While its node is offline it stays listed with Connected false, Status
// "unavailable", Health "offline", and 0 as capacity and counters.
type Provider struct {
	Node         string `json:"node"`
	ID           string `json:"id"`
	Type         string `json:"type"`            // of the configuration: vllm, ollama, ...; "" = no longer configured
	Label        string `json:"label,omitempty"` // what the operator calls it, where that is not just its type
	Connected    bool   `json:"connected"`
	Status       string `json:"status"` // available, full, draining, disabled, degraded, unavailable, removed
	Health       string `json:"health"` // healthy, degraded, offline
	Enabled      bool   `json:"enabled"`
	Draining     bool   `json:"draining"`
	Generation   uint64 `json:"generation"`      // the newest of its node
	Capacity     *int   `json:"capacity"`        // slots; null = unlimited
	InFlight     int    `json:"in_flight"`       // leases
	LongCapacity *int   `json:"long_capacity"`   // long slots; null = long is treated as normal
	LongInFlight int    `json:"long_in_flight"`  // leases of class long
	Queued       int    `json:"queued"`          // waiters that could use it; one presses on several providers
	LongQueued   int    `json:"long_queued"`     // of Queued, those of class long
	Priority     int    `json:"priority"`        // lower wins ties
	Cause        string `json:"cause,omitempty"` // why it is degraded, in the node's words
}
