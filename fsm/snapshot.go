package fsm

// Snapshot is what operators see: everything computed from one state at one index, so that
// admission, status, metrics and dashboard cannot disagree. Lists are sorted by id and never nil.
type Snapshot struct {
	Index     uint64
	Term      uint64
	Now       Time
	Wall      int64
	Revision  Revision
	Queue     QueueView
	Providers []ProviderView
	Nodes     []NodeView
	Sessions  []SessionView
	Models    []ModelView
	Granted   uint64
	Returned  uint64
}

// QueueView is the queue in numbers.
type QueueView struct {
	Pending     int // all waiters, detached ones too
	Max         int
	LongPending int
	Detached    int
}

// ProviderView is a provider as operators see it. Of a provider whose node has no ready link the effective numbers
// (capacities and counters) are 0 and the identity is kept.
type ProviderView struct {
	ID           ProviderID
	Node         NodeID
	Connected    bool   // its node has a ready link
	Status       string // available, full, draining, disabled, degraded, unavailable, removed
	Health       string // healthy, degraded, offline
	Cause        string
	Enabled      bool
	Draining     bool
	Unlimited    bool
	Generation   Generation // the node's newest
	Capacity     int
	InFlight     int
	Fencing      int // of InFlight, how many belong to fenced links
	LongCapacity int // LongUncounted = not counted
	LongInFlight int
	Queued       int // unique waiters that have it as a candidate
	LongQueued   int
	Priority     int
	Granted      uint64
	Returned     uint64
}

// NodeView is a node and its links.
type NodeView struct {
	ID         NodeID
	Connected  bool // has a ready link
	Generation Generation
	Draining   bool
	Links      []LinkView
}

// LinkView is a link of a node.
type LinkView struct {
	Node       NodeID
	Edge       EdgeID
	Generation Generation
	State      LinkState
	Leases     int
}

// SessionView is a session in being.
type SessionView struct {
	ID         SessionID
	Edge       EdgeID
	InGrace    bool
	OpenedWall int64
}

// ModelView is a model and its candidates, sorted by provider.
type ModelView struct {
	ID         ModelID
	Candidates []Candidate
	Available  bool // one candidate is enabled, healthy, not draining and has a ready link to some edge
	Queued     int
}

// RequestView is a request in being.
type RequestView struct {
	RequestRow
	Position int  // of a waiter, from 1
	Deadline Time // of a waiter; 0 = none
	Age      Time
	// Candidates tells of a waiter why it waits.
	Candidates []CandidateView
}

// CandidateView tells whether a waiter could have a provider now, and if not, why.
type CandidateView struct {
	Provider     ProviderID
	Dispatchable bool
	Reason       string // "", or one of the Why constants
}

// Why a candidate is not dispatchable.
const (
	WhyDisabled   = "disabled"
	WhyDraining   = "draining"
	WhyDegraded   = "degraded"
	WhyOffline    = "offline"    // its node has no link to the owner's edge
	WhyPending    = "pending"    // its node's link is not ready yet
	WhyRecovering = "recovering" // no link yet, and the owner's session is in its startup grace
	WhyFull       = "full"
	WhyLongFull   = "long_full"
	WhyExcluded   = "excluded"        // it refused this request before
	WhyTooSmall   = "too_small"       // its context window, or it takes no long requests
	WhyIncapable  = "incapable"       // it lacks a needed capability
	WhyDetached   = "detached"        // the waiter has no session now
	WhyRemoved    = "removed"         // no longer in the configuration
	WhyPrincipal  = "principal_limit" // its principal holds as many leases as it may
)
