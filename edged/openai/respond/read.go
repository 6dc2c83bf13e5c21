package respond

import "encoding/json"

// Output are the output items of a response.
func Output(response json.RawMessage) []json.RawMessage {
	var r struct{ Output []json.RawMessage }
	_ = json.Unmarshal(response, &r) // ours
	return r.Output
}

// ItemID is the id of an item.
func ItemID(item json.RawMessage) string {
	var it struct{ ID string }
	_ = json.Unmarshal(item, &it) // ours, or read before
	return it.ID
}

// Cancel gives a response that was cancelled before its end, and the event that ends its stream.
func Cancel(response json.RawMessage) (json.RawMessage, Event) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(response, &fields) // ours
	fields["status"] = quote(string(Cancelled))
	out := encode(fields)
	return out, whole(EventCancelled, out)
}

// GiveUp gives a response as it is when it is given up, and its last event.
func GiveUp(response json.RawMessage, code, message string) (json.RawMessage, Event) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(response, &fields) // ours
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["status"] = quote(string(Failed))
	fields["error"] = object(pair{"code", code}, pair{"message", message})
	out := encode(fields)
	return out, whole(EventFailed, out)
}

// List is a page of items. more = others follow it.
func List(items []json.RawMessage, more bool) json.RawMessage {
	var from, to any
	if n := len(items); n > 0 {
		from, to = ItemID(items[0]), ItemID(items[n-1])
	}
	return object(
		pair{"object", "list"}, pair{"data", array(items)}, pair{"first_id", from}, pair{"last_id", to}, pair{"has_more", more},
	)
}

// ReadError reads an error answer of a backend; message "" = there is none in it.
func ReadError(body []byte) (code, message string) {
	var e struct{ Error json.RawMessage }
	if json.Unmarshal(body, &e) != nil || len(e.Error) == 0 || string(e.Error) == "null" {
		return "", ""
	}
	return theirs(e.Error)
}
