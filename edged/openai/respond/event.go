package respond

import (
	"encoding/json"
	"strconv"
)

// Event is an event of a response's stream. Its sequence number is its place in the stream, from 0, and is written into
// it only when it is sent: so events can be kept in a list, and go on when a run begins anew.
type Event struct {
	Type string
	Body json.RawMessage // the members after type and sequence_number, without braces; may be empty
}

// Append writes the event as a client gets it.
func (e *Event) Append(b []byte, sequence int64) []byte {
	b = append(append(append(b, "event: "...), e.Type...), "\ndata: {\"type\":\""...)
	b = append(append(b, e.Type...), `","sequence_number":`...)
	b = strconv.AppendInt(b, sequence, 10)
	if len(e.Body) > 0 {
		b = append(append(b, ','), e.Body...)
	}
	return append(b, "}\n\n"...)
}

// Types of events that others name.
const (
	EventCreated    = "response.created"
	EventQueued     = "response.queued"
	EventInProgress = "response.in_progress"
	EventCompleted  = "response.completed"
	EventIncomplete = "response.incomplete"
	EventFailed     = "response.failed"
	EventCancelled  = "response.cancelled"
)

// event makes an event; values are as in pair.
func event(kind string, list ...pair) Event { return Event{Type: kind, Body: members(nil, list...)} }

// whole makes an event that carries a response.
func whole(kind string, response json.RawMessage) Event {
	return event(kind, pair{"response", response})
}

// Status is what has become of a response.
type Status string

// The states. The first two are not final.
const (
	Queued     Status = "queued"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Incomplete Status = "incomplete"
)

// Final tells whether a response in this state stays as it is.
func (s Status) Final() bool { return s != Queued && s != InProgress && s != "" }

// finalEvent is the event that ends a stream of a response in a final state.
func finalEvent(s Status) string { return "response." + string(s) }
