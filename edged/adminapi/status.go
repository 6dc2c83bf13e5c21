package adminapi

// Every answer to a read carries these headers.
const (
	HeaderIndex  = "X-Iop-Applied-Index" // of the log: the state that was read is at least as new
	HeaderLag    = "X-Iop-Lag"           // entries of the log that the replica has and has not applied yet
	HeaderLeader = "X-Iop-Leader"        // edge id of the leader as the replica knows it; empty = none: the state may be old
)

// Status answers GET /status: the whole at a glance, all of it from one log index.
type Status struct {
	Edge         string     `json:"edge"`          // the edge that answered
	Role         string     `json:"role"`          // of this replica: leader, follower, candidate, ...
	Leader       string     `json:"leader"`        // edge id of the leader; "" = none known
	Term         uint64     `json:"term"`          // of the leader
	AppliedIndex uint64     `json:"applied_index"` // of the log: the state that everything here was read from
	Lag          uint64     `json:"lag"`           // entries of the log that this replica has and has not applied yet
	Revision     uint64     `json:"revision"`      // of the configuration
	Queue        Queue      `json:"queue"`
	Providers    []Provider `json:"providers"` // by id
	Links        []Link     `json:"links"`     // by node, then generation
}

// Queue is the queue in numbers.
type Queue struct {
	Pending     int `json:"pending"`      // waiters of the whole cluster
	Max         int `json:"max"`          // more are refused
	LongPending int `json:"long_pending"` // of Pending, those of class long
}

// Link is a connection between a node and an edge, in the list of all.
type Link struct {
	Node       string `json:"node"`
	Edge       string `json:"edge"`
	Generation uint64 `json:"generation"`
	State      string `json:"state"`  // pending, ready, fenced
	Leases     int    `json:"leases"` // that it carries
}

// Health answers GET /healthz of an edge that can do its work.
type Health struct {
	Status string `json:"status"` // ok
}
