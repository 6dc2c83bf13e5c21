package adminapi

import "time"

// Bounds of the time between two looks of the edge for one feed.
const (
	LiveEveryMin = 250 * time.Millisecond
	LiveEveryMax = 10 * time.Second
)

// Frame is one message of GET /live?every=MS, a stream of server-sent events that keeps a picture of the whole edge up to
// date. Event "whole" has everything that is; event "change" has what is different since the frame before it: rows that
// are new or changed, and the ids of those that are gone. A list that is absent is empty in a whole, and unchanged in a
// change. The numbers at the top are always there. The times are absolute, in Unix milliseconds of the wall clock, and
// only for people: nothing is decided by them. Event "bye" says that the edge stops.
//
// Whoever misses a Seq, or connects anew, begins with a whole. Picture keeps the books.
type Frame struct {
	Whole        bool   `json:"whole"`
	Seq          uint64 `json:"seq"`   // of a change: one more than that of the frame before it
	AtMS         int64  `json:"at_ms"` // when it was made, by the edge's clock
	Edge         string `json:"edge"`
	Version      string `json:"version"` // of the edge's program
	Role         string `json:"role"`    // of this replica: leader, follower, candidate, ...
	Leader       string `json:"leader"`  // edge id; "" = none known
	Term         uint64 `json:"term"`
	AppliedIndex uint64 `json:"applied_index"`
	Lag          uint64 `json:"lag"`
	Revision     uint64 `json:"revision"` // of the configuration
	Actions      string `json:"actions"`  // what this viewer may change: allowed, token_needed, read_only
	Queue        Queue  `json:"queue"`

	Providers     []Provider   `json:"providers,omitempty"`
	ProvidersGone []string     `json:"providers_gone,omitempty"`
	Nodes         []Node       `json:"nodes,omitempty"`
	NodesGone     []string     `json:"nodes_gone,omitempty"`
	Leases        []LiveLease  `json:"leases,omitempty"`
	LeasesGone    []uint64     `json:"leases_gone,omitempty"`
	Waiters       []LiveWaiter `json:"waiters,omitempty"`
	WaitersGone   []string     `json:"waiters_gone,omitempty"` // request ids
	Members       []LiveMember `json:"members,omitempty"`      // all of them, when one has changed
	Pulse         []Sample     `json:"pulse,omitempty"`        // in a whole all that are kept, in a change those since the frame before it
}

// What a viewer may change.
const (
	ActionsAllowed     = "allowed"      // it showed the admin token, or needs none because it is no browser
	ActionsTokenNeeded = "token_needed" // it is a browser, and the edge has no edge.admin.token: it can't show one
	ActionsReadOnly    = "read_only"    // it showed edge.admin.view_token
)

// The events of GET /live.
const (
	LiveWhole  = "whole"
	LiveChange = "change"
	LiveBye    = "bye"
)

// LiveLease is a request that holds a slot.
type LiveLease struct {
	ID          uint64 `json:"id"`
	Request     string `json:"request"`
	Model       string `json:"model"`
	Provider    string `json:"provider"`
	Node        string `json:"node"`
	Class       string `json:"class"` // normal, long
	State       string `json:"state"` // held, fencing
	Edge        string `json:"edge"`
	Generation  uint64 `json:"generation"`
	GrantedAtMS int64  `json:"granted_at_ms"`
}

// LiveWaiter is a request in the queue.
type LiveWaiter struct {
	Request      string `json:"request"`
	Model        string `json:"model"`
	Class        string `json:"class"` // normal, long
	State        string `json:"state"` // waiting, detached
	Edge         string `json:"edge"`
	Principal    string `json:"principal"` // "" = nobody in particular
	Place        uint64 `json:"place"`     // its number in the order of all requests: a lower one comes first. It stays while it waits
	EnqueuedAtMS int64  `json:"enqueued_at_ms"`
	DeadlineAtMS int64  `json:"deadline_at_ms"` // 0 = none
	WaitsFor     string `json:"waits_for"`      // a sentence
}

// LiveMember is one replica of the cluster. It is asked every few seconds.
type LiveMember struct {
	ID        string `json:"id"`
	Address   string `json:"address"`  // of its cluster listener; "" = it has none
	Suffrage  string `json:"suffrage"` // voter, learner
	Leader    bool   `json:"leader"`
	Reachable bool   `json:"reachable"`
	Role      string `json:"role"` // by its own word; "" = it does not answer
	Applied   uint64 `json:"applied"`
	Lag       uint64 `json:"lag"` // entries behind the furthest member
	Version   string `json:"version"`
}

// Pulse answers GET /pulse: what happened on the edge that answers, second by second and minute by minute.
type Pulse struct {
	Samples []Sample `json:"samples"` // oldest first: those of a minute, then those of a second. They overlap in time
}

// Sample is what happened in one second or one minute. The counts are of this edge; pending, in flight and capacity are
// those of the whole cluster at the end of it.
type Sample struct {
	AtMS      int64 `json:"at_ms"`   // its end, by the edge's clock
	StepMS    int64 `json:"step_ms"` // its length: 1000 or 60000
	Requests  int64 `json:"requests"`
	Errors    int64 `json:"errors"` // of Requests, those that were not served though their client did nothing wrong
	Granted   int64 `json:"granted"`
	Returned  int64 `json:"returned"`
	TokensIn  int64 `json:"tokens_in"`
	TokensOut int64 `json:"tokens_out"`
	Pending   int   `json:"pending"`
	InFlight  int   `json:"in_flight"`
	Capacity  *int  `json:"capacity"` // null = a connected provider is unlimited

	WaitMS      Quantiles `json:"wait_ms"`
	FirstByteMS Quantiles `json:"first_byte_ms"`
	DurationMS  Quantiles `json:"duration_ms"`
}

// Quantiles are read off a histogram, so they are as exact as its buckets. Null: nothing ended in that time.
type Quantiles struct {
	P50 *float64 `json:"p50"`
	P90 *float64 `json:"p90"`
	P99 *float64 `json:"p99"`
}
