package adminapi

// Status answers GET /status: the whole at a glance, all of it from one log index.
type Status struct {
	Edge         string     `json:"edge"`          // the edge that answered
	Role         string     `json:"role"`          // of this replica: leader, follower, candidate, ...
	Leader       string     `json:"leader"`        // edge id of the leader; "" = none known
	Term         uint64     `json:"term"`          // of the leader
	AppliedIndex uint64     `json:"applied_index"` // of the log: the state that everything here was read from
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
