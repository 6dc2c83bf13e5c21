package respond

import (
	"encoding/json"
	"strings"
)

// RelayPath is where a request goes to a provider whose own Responses API is trusted.
const RelayPath = "/v1/responses"

// Relay is the request for a provider whose own Responses API is trusted: as the client sent it, but with the
// conversation in it, since what is stored is stored here. chat is the chat request for the same as it would go to that
// provider: the model's name and what its policy sets are taken from there.
func (q *Request) Relay(history []json.RawMessage, chat []byte, stream bool) []byte {
	fields := make(map[string]json.RawMessage, len(q.fields)+4)
	for name, value := range q.fields {
		fields[name] = value
	}
	delete(fields, "previous_response_id")
	delete(fields, "background")
	delete(fields, "stream")
	fields["store"] = json.RawMessage("false")
	fields["input"] = array(append(history[:len(history):len(history)], q.Items...))
	if stream {
		fields["stream"] = json.RawMessage("true")
	}
	var planned map[string]json.RawMessage
	_ = json.Unmarshal(chat, &planned) // ours
	for name, as := range map[string]string{"model": "model", "max_tokens": "max_output_tokens", "temperature": "temperature", "top_p": "top_p"} {
		if value, ok := planned[name]; ok {
			fields[as] = value
		}
	}
	return encode(fields)
}

// BeginRelay begins an answer of a provider's own Responses API. Its events pass as they are, with numbers of ours; of
// its response everything passes but what is ours to say: id, model, and what the request said of storing.
func (r *Run) BeginRelay(stream bool) { r.stream, r.relays = stream, true }

// relay takes the data of an event of a provider's own stream.
func (r *Run) relay(data []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		r.broken(codeServer, "The provider sent an event that can't be read.")
		return
	}
	kind := text(fields["type"])
	switch kind {
	case EventCreated, EventQueued, EventInProgress: // there have been such already
		return
	case "error":
		r.broken(theirs(data))
		return
	}
	if !strings.HasPrefix(kind, "response.") {
		return
	}
	if len(fields["response"]) > 0 {
		r.relayWhole(fields["response"])
		return
	}
	delete(fields, "type")
	delete(fields, "sequence_number")
	body := encode(fields)
	if r.grown(len(body)) {
		r.events = append(r.events, Event{Type: kind, Body: body[1 : len(body)-1]})
	}
}

// relayWhole takes a provider's own response, which is the end of its answer.
func (r *Run) relayWhole(response json.RawMessage) {
	var own struct {
		Status  Status
		Error   json.RawMessage
		Details struct{ Reason string } `json:"incomplete_details"`
	}
	if json.Unmarshal(response, &own) != nil || !own.Status.Final() {
		r.broken(codeServer, "The provider's response has no end.")
		return
	}
	r.theirs, r.done = response, true
	switch own.Status {
	case Completed:
	case Incomplete:
		r.finish = "length"
		if own.Details.Reason == "content_filter" {
			r.finish = own.Details.Reason
		}
	default:
		r.broken(theirs(own.Error))
	}
}

// relayed is the provider's own response as the client gets it.
func (r *Run) relayed() json.RawMessage {
	var theirs, ours map[string]json.RawMessage
	_ = json.Unmarshal(r.theirs, &theirs) // read before
	own := *r
	own.theirs = nil
	_ = json.Unmarshal(own.Object(), &ours) // ours
	for _, name := range []string{"id", "object", "created_at", "status", "background", "model", "store", "previous_response_id", "metadata"} {
		theirs[name] = ours[name]
	}
	return encode(theirs)
}
