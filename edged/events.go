package edged

import (
	"encoding/binary"
	"errors"

	"iop/edged/openai/respond"
	"iop/storage"
)

// Events in the vault: for each, its type and its body, with their lengths as varints before them. Their numbers are their
// places in the list of all events.

func encodeEvents(b []byte, events []respond.Event) []byte {
	for i := range events {
		b = binary.AppendUvarint(b, uint64(len(events[i].Type)))
		b = append(b, events[i].Type...)
		b = binary.AppendUvarint(b, uint64(len(events[i].Body)))
		b = append(b, events[i].Body...)
	}
	return b
}

var errEvents = errors.New("stored events can't be read")

// decodeEvents gives the events from a number on.
func decodeEvents(chunks []storage.Events, from int64) ([]respond.Event, error) {
	var out []respond.Event
	for _, c := range chunks {
		rest := c.Bytes
		for n := c.From; n < c.From+c.Count; n++ {
			kind, after, ok := cutField(rest)
			if !ok {
				return nil, errEvents
			}
			body, after, ok := cutField(after)
			if !ok {
				return nil, errEvents
			}
			rest = after
			if n >= from {
				out = append(out, respond.Event{Type: string(kind), Body: body})
				from = n + 1
			}
		}
	}
	return out, nil
}

func cutField(b []byte) (field, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
