package fsm

// Image is the whole state as plain rows in a fixed order: what a snapshot holds and what Digest hashes. Requests stand
// leases first, by node, generation and lease id, then waiters by enqueue number; all else is sorted by its key.
// Rows share no memory with the machine.
type Image struct {
	Index    uint64
	Term     uint64
	Now      Time
	Wall     int64
	Revision Revision
	Document []byte
	Config   Config

	LastSession SessionID // highest id ever given
	NextLease   LeaseID
	NextEnqueue Enqueue
	Granted     uint64 // leases granted since the beginning
	Returned    uint64 // leases returned since the beginning
	Level       uint32 // feature level; 0 = never raised
	Checked     uint64 // index of the last digest check
	LastTurn    uint64 // of the round of principals
	Metered     uint64 // runs counted in the ledger since the beginning
	LastOrder   uint64 // of responses

	Offers    []OfferRow
	Sessions  []SessionRow
	Nodes     []NodeRow
	Providers []ProviderRow
	Models    []ModelRow
	Requests  []RequestRow
	Joins     []JoinRow
	Edges     []EdgeRow
	// Principals are those with waiters, if the queue is fair.
	Principals []PrincipalRow
	Usage      []UsageRow
	Responses  []ResponseRow // by Order
}

// PrincipalRow is a principal's place in the round.
type PrincipalRow struct {
	ID   PrincipalID
	Turn uint64 // the lowest is the next
}

// OfferRow is the last configuration file that an edge offered.
type OfferRow struct {
	Edge  EdgeID
	Offer string
}

// EdgeRow is what is known of an edge beyond its sessions.
type EdgeRow struct {
	Edge    EdgeID
	Address string // where nodes reach it
}

// SessionRow is a current session.
type SessionRow struct {
	ID         SessionID
	Edge       EdgeID
	Nonce      uint64
	OpenedAt   Time
	OpenedWall int64
	GraceUntil Time // 0 = the grace is over
	NextSeq    uint64
	AckBelow   uint64
	Batches    []BatchRow // AckBelow ≤ Seq < NextSeq, in order
}

// BatchRow is the stored answer to a batch.
type BatchRow struct {
	Seq      uint64
	Sum      uint64
	Outcomes []Outcome
}

// NodeRow is a node that the configuration has, or had and leases still name.
type NodeRow struct {
	ID         NodeID
	Generation Generation // the last one given
	Instance   uint64
	Draining   bool
	Removed    bool      // no longer in the configuration
	Token      TokenHash // of the token that it got by joining; zero = what the configuration says
	Links      []LinkRow
}

// LinkState is the state of a link.
type LinkState uint8

// The states of a link.
const (
	LinkPending LinkState = iota
	LinkReady
	LinkFenced // gone, but its leases still count
)

func (s LinkState) String() string {
	switch s {
	case LinkPending:
		return "pending"
	case LinkReady:
		return "ready"
	}
	return "fenced"
}

// LinkRow is a link in being, or a fenced one with leases.
type LinkRow struct {
	Generation Generation
	Edge       EdgeID
	Session    SessionID
	State      LinkState
	FenceUntil Time // of a fenced link
	Apart      bool // of a fenced link: its leases do not go with the node's last other link
}

// ProviderRow is the part of a provider that is not configuration. Config is repeated for those that the
// configuration no longer has and that leases still name.
type ProviderRow struct {
	Config   ProviderConfig
	Removed  bool
	Draining bool
	Health   Health
	Cause    string
	Granted  uint64
	Returned uint64
}

// ModelRow is the part of a model that is not configuration.
type ModelRow struct {
	ID     ModelID
	Cursor ProviderID // last choice of the round robin
}

// RequestState is what a request is at the moment.
type RequestState uint8

// The states of a request.
const (
	StateWaiting  RequestState = iota // in the queue
	StateDetached                     // in the queue, its session has ended
	StateHeld                         // holds a lease
	StateFencing                      // holds a lease of a fenced link
)

func (s RequestState) String() string {
	switch s {
	case StateWaiting:
		return "waiting"
	case StateDetached:
		return "detached"
	case StateHeld:
		return "held"
	}
	return "fencing"
}

// RequestRow is a request in being: a waiter or a lease.
type RequestRow struct {
	ID            RequestID
	Fingerprint   Fingerprint
	Model         ModelID
	Class         Class
	InputTokens   int64
	Needs         Needs
	MaxWait       Time
	Session       SessionID // 0 if detached, or if it is a fenced lease whose session ended
	Edge          EdgeID    // of the session that owns it, or did
	State         RequestState
	Enqueue       Enqueue
	EnqueuedAt    Time
	EnqueuedWall  int64
	EnqueuedIndex uint64
	DetachedUntil Time // of a detached waiter
	Excluded      []ProviderID
	Direct        bool // addressed to one provider, beside the queue
	Principal     PrincipalID
	Token         string // token_ref
	Metered       bool   // its run is counted in the ledger

	// Of a lease:
	Lease        LeaseID
	Provider     ProviderID
	Node         NodeID
	Served       string
	Generation   Generation
	GrantedAt    Time
	GrantedWall  int64
	GrantedIndex uint64
}
