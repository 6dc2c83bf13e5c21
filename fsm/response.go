package fsm

import "slices"

// ResponseID names a stored response; unique over all principals. At most RequestIDMax bytes. A background response's
// request has the same name.
type ResponseID string

// ResponseStatus is what has become of a response.
type ResponseStatus uint8

// The states of a response. The first two are not final.
const (
	ResponseQueued ResponseStatus = iota
	ResponseInProgress
	ResponseCompleted
	ResponseFailed
	ResponseCancelled
	ResponseIncomplete
)

var responseNames = [...]string{"queued", "in_progress", "completed", "failed", "cancelled", "incomplete"}

func (s ResponseStatus) String() string { return nameOf(responseNames[:], int(s)) }

// Final tells whether a response in this state stays as it is.
func (s ResponseStatus) Final() bool { return s >= ResponseCompleted }

// Bounds of stored responses.
const (
	// ResponsesBytes is responses.max_bytes where it is absent or 0.
	ResponsesBytes = 256 << 20
	// ResponsesRetention is responses.retention_ms where it is absent or 0.
	ResponsesRetention = 24 * 3600 * Second
	// ResponseOverhead is what a response counts for beside its bytes. So it also bounds how many there are.
	ResponseOverhead = 1024
	// ResponseLostMax is how often the run of a background response may be lost before it is given up.
	ResponseLostMax = 16
)

// Payload is what a command carries for the vault: bytes that mean nothing to the machine, and that it does not keep.
type Payload struct {
	Record []byte // what it takes to run the response and to tell what was asked
	Object []byte // the response as clients get it; nil = as before
	Events []byte // Count events, to be put behind those that there are
	Count  int64
}

func (p *Payload) size() int64 { return int64(len(p.Record) + len(p.Object) + len(p.Events)) }

// Write is a change of the vault, which storage carries out.
type Write struct {
	Response ResponseID
	Drop     bool  // forget all that there is of it; otherwise put what is not nil
	From     int64 // number of the first event
	Payload
}

type (
	// Submit stores a background response and puts its request into the queue, for the cluster: it is granted to whichever
	// session has the link that is used (EffectGranted), and goes back to its place when its run is lost. Request.Request
	// is not looked at. Outcome: Queued, or Refused as for an Admit, or conflict (the id is taken), or store_full.
	Submit struct {
		Response ResponseID
		Request  Admit
		Payload
	}

	// Progress adds to a background response, and ends it if the status is a final one. Lease is the one that it runs on;
	// with Lease 0 it must end it: a client cancels it. Outcome: Done, Unknown, Stale (it is final, or runs on another lease)
	// or Refused(store_full), which no final one is.
	Progress struct {
		Response ResponseID
		Lease    LeaseID
		Status   ResponseStatus
		Payload
	}

	// Keep stores a response that has ended. Outcome: Done, Stale (a background one of this id has not ended) or
	// Refused(store_full).
	Keep struct {
		Response  ResponseID
		Principal PrincipalID
		Status    ResponseStatus
		Payload
	}

	// Forget drops a response, and its request if it waits. Outcome: Done or Unknown.
	Forget struct{ Response ResponseID }
)

func (*Submit) command()   {}
func (*Progress) command() {}
func (*Keep) command()     {}
func (*Forget) command()   {}

// ResponseRow is a stored response; its payload is in the vault.
type ResponseRow struct {
	ID         ResponseID
	Principal  PrincipalID
	Background bool
	Status     ResponseStatus
	Cause      Refusal // why the machine ended it itself; RefusalNone = it did not
	Attempt    uint32  // grants of its request
	Lost       uint32  // runs that were lost
	Events     int64
	Bytes      int64 // that it counts for
	Object     int64 // of them, those of the object
	Since      Time  // when it was submitted, or ended
	Wall       int64 // wall clock when it was stored
	Order      uint64
}

// response is a stored response in its line: those that have not ended, or those that have, each by Order.
type response struct {
	ResponseRow
	prev, next *response
}

// Response returns a stored response, and the lease that it runs on, 0 if none.
func (m *Machine) Response(id ResponseID) (ResponseRow, LeaseID, bool) {
	row := m.vault.by[id]
	if row == nil {
		return ResponseRow{}, 0, false
	}
	if r := m.requests[RequestID(id)]; r != nil && r.response == row {
		return row.ResponseRow, r.lease, true
	}
	return row.ResponseRow, 0, true
}

// Responses returns all stored responses by Order.
func (m *Machine) Responses() []ResponseRow {
	if len(m.vault.by) == 0 {
		return nil
	}
	rows := make([]ResponseRow, 0, len(m.vault.by))
	for _, l := range [...]*responses{&m.vault.live, &m.vault.ended} {
		for r := l.head; r != nil; r = r.next {
			rows = append(rows, r.ResponseRow)
		}
	}
	slices.SortFunc(rows, func(a, b ResponseRow) int {
		if a.Order < b.Order {
			return -1
		}
		return 1
	})
	return rows
}

// ResponsesCount returns how many responses are stored, how many of them have not ended, and for how many bytes they count.
func (m *Machine) ResponsesCount() (stored, live int, bytes int64) {
	return len(m.vault.by), m.vault.live.n, m.vault.bytes
}
