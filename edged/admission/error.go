package admission

import "iop/fsm"

// Refused is the machine's refusal of a request.
type Refused struct{ Why fsm.Refusal }

func (r *Refused) Error() string { return "admission: refused: " + r.Why.String() }

// Code is the stable name of the refusal.
func (r *Refused) Code() string { return r.Why.String() }

// coded is an error of this edge with a stable code.
type coded struct{ code, text string }

func (e *coded) Error() string { return "admission: " + e.text }
func (e *coded) Code() string  { return e.code }

// The errors that say nothing about the request itself. Each has a method Code() string.
var (
	ErrOverloaded   error = &coded{"overloaded", "the log is too far behind"}
	ErrStopping     error = &coded{"stopping", "the edge is stopping"}
	ErrSessionEnded error = &coded{"session_ended", "the edge's session has ended"}
	ErrNoLeader     error = &coded{"no_leader", "the cluster has no leader, or does not answer"}
	ErrFailed       error = &coded{"failed", "the log has failed"}
)
