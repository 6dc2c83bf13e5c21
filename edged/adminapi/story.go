package adminapi

import "time"

// Story tells what happened to a request or lease, from the log of the replica that was asked.
type Story struct {
	Lines []StoryLine `json:"lines"` // in order
	From  uint64      `json:"from"`  // the entries of the log that were looked at
	To    uint64      `json:"to"`
	// Complete: all that is kept was looked at. Else time ran out and older entries were not.
	Complete bool `json:"complete"`
	Dropped  int  `json:"dropped"` // older lines that are not shown, because there are too many
}

// StoryLine is one thing that happened.
type StoryLine struct {
	Index      uint64    `json:"index"`   // of the log
	Time       time.Time `json:"time"`    // wall clock of the leader
	Command    string    `json:"command"` // that brought it about: admit, release, link_lost, ...
	Edge       string    `json:"edge"`    // that proposed it; "" = none
	Session    uint64    `json:"session"` // that proposed it; 0 = none
	Request    string    `json:"request"`
	Lease      uint64    `json:"lease"` // 0 = none
	Provider   string    `json:"provider"`
	Node       string    `json:"node"`
	Generation uint64    `json:"generation"`
	Outcome    string    `json:"outcome"` // granted, queued, returned, detached, queue_timeout, ...
	Text       string    `json:"text"`    // for people
}

// Explanation tells why a request waits.
type Explanation struct {
	AheadCount int                  `json:"ahead_count"` // waiters before it that could take a slot that it could take
	Ahead      []Ahead              `json:"ahead"`       // the first of them
	Candidates []ExplainedCandidate `json:"candidates"`
}

// Ahead is a waiter before another one.
type Ahead struct {
	Position int    `json:"position"`
	Request  string `json:"request"`
	Model    string `json:"model"`
	Class    string `json:"class"`
}

// ExplainedCandidate is a provider that the request could have, and what would have to happen.
type ExplainedCandidate struct {
	Candidate
	Node     string   `json:"node"`
	Capacity int      `json:"capacity"` // 0 = unlimited
	InFlight int      `json:"in_flight"`
	Holders  []uint64 `json:"holders"` // leases that hold its slots, the first of them
	Needed   string   `json:"needed"`  // what would have to happen, for people
}

// Needed says what would have to happen before a waiter can have a candidate. The reasons are those of Candidate.
func Needed(reason, provider, node, cause string) string {
	switch reason {
	case "":
		return "nothing: it can be granted now"
	case "full":
		return "one of its slots has to come back"
	case "long_full":
		return "one of its slots for long requests has to come back"
	case "offline":
		return "node " + node + " has to connect to the edge that owns the request"
	case "pending":
		return "node " + node + " has to report that it is ready"
	case "recovering":
		return "node " + node + " has to connect before the startup grace is over"
	case "disabled":
		return "provider " + provider + " has to be enabled in the configuration"
	case "draining":
		return "draining of provider " + provider + " or node " + node + " has to end"
	case "degraded":
		if cause != "" {
			cause = " (" + cause + ")"
		}
		return "its health check has to pass again" + cause
	case "excluded":
		return "nothing helps: it refused this request before"
	case "too_small":
		return "nothing helps: the request is too long for it"
	case "incapable":
		return "nothing helps: it can't do what the request needs"
	case "detached":
		return "the client has to come back: the session of its edge ended"
	case "principal_limit":
		return "a slot of its principal has to come back: it holds as many as openai.principals[].max_in_flight allows"
	case "removed":
		return "it has to be in the configuration again"
	}
	return reason
}
