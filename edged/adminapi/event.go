package adminapi

// Event is one message of GET /watch, a stream of server-sent events for observers: what happened to requests and links
// other than by the caller's own command. The stream is lossy by design: one who reads too slowly misses events, and
// nobody waits for it. The list calls tell the state; an event says that looking again is worth it.
type Event struct {
	Kind       string `json:"kind"` // granted, ended, returned, link_fenced, session_ended, config
	Edge       string `json:"edge,omitempty"`
	Session    uint64 `json:"session,omitempty"`
	Request    string `json:"request,omitempty"`
	Model      string `json:"model,omitempty"`
	Lease      uint64 `json:"lease,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Node       string `json:"node,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Revision   uint64 `json:"revision,omitempty"`
}
