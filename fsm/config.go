package fsm

// Config is what admission needs of the cluster's configuration, as plain values. The caller has validated it: ids are
// unique and references resolve; ApplyConfig drops what does not resolve rather than failing.
type Config struct {
	Pool      Pool
	Models    []ModelConfig
	Nodes     []NodeID
	Providers []ProviderConfig
	// Principals are those that have limits.
	Principals []PrincipalConfig
}

// Pool bounds the queue. All times are spans of cluster time.
type Pool struct {
	MaxQueue       int  // pending requests of the whole cluster; at least 1
	QueueTimeout   Time // from the first enqueue; 0 = none
	StartupGrace   Time // how long candidates of a young session count as recovering
	ReattachWindow Time // how long a detached waiter keeps its place
	FenceTimeout   Time // how long leases of a fenced link count without a report
	// Fair serves the principals that could have a slot in turn, and the waiters of each in order; false = all in order.
	Fair bool
	// ResponsesBytes bounds what stored responses count for; 0 = the constant of that name.
	ResponsesBytes int64
	// ResponsesRetention is how long a response is kept after its end; 0 = the constant of that name.
	ResponsesRetention Time
}

// ModelConfig is an external model key and its candidates.
type ModelConfig struct {
	ID         ModelID
	Candidates []Candidate
}

// Candidate is a provider and the model's name there.
type Candidate struct {
	Provider ProviderID
	Served   string
}

// ProviderConfig is a provider as admission sees it.
type ProviderConfig struct {
	ID            ProviderID
	Node          NodeID
	Capacity      int   // slots; 0 = unlimited (leased and counted, never full)
	LongCapacity  int   // long slots; LongUncounted = long is treated as normal; 0 = takes no long request
	ContextWindow int64 // tokens; 0 = not stated
	Priority      int   // lower wins ties
	Enabled       bool
	Can           Needs
}

// LongUncounted as LongCapacity: the provider does not count long slots.
const LongUncounted = -1

// Health is a provider's condition as its node reports it.
type Health uint8

// The states of health. A provider whose node has no ready link is shown as offline.
const (
	Healthy Health = iota
	Degraded
)

func (h Health) String() string {
	if h == Degraded {
		return "degraded"
	}
	return "healthy"
}
