package respond

import (
	"encoding/json"
	"strconv"
	"strings"
)

// output is an item of a response.
type output struct {
	kind   string // type of the item
	id     string
	index  int // output_index
	status string
	parts  []*piece // of a message or reasoning

	callID, name string // of a call
	ref          toolRef
	arguments    strings.Builder
	told         bool // output_item.added was sent
}

// piece is a part of an output's content.
type piece struct {
	kind   string
	text   strings.Builder
	likely []json.RawMessage
	closed bool
}

// Kinds of pieces.
const (
	partText    = "output_text"
	partRefusal = "refusal"
	partThought = "reasoning_text"
	partSummary = "summary_text"
)

// thoughtPart is what a thought is part of: the summary, if there is to be one.
func (r *Run) thoughtPart() string {
	if r.q.summary != nil {
		return partSummary
	}
	return partThought
}

// say makes a new item the current one.
func (r *Run) say(kind string) {
	if r.current != nil {
		r.current.close(r, Completed)
	}
	r.current = r.newOutput(kind)
	r.current.tell(r)
}

func (r *Run) newOutput(kind string) *output {
	n := len(r.outputs)
	o := &output{kind: kind, id: itemID(kind, r.q.ID, true, n), index: n, status: "in_progress"}
	r.outputs = append(r.outputs, o)
	return o
}

// tell sends that the item is there.
func (o *output) tell(r *Run) {
	o.told = true
	r.emit("response.output_item.added", pair{"output_index", o.index}, pair{"item", o.json(r)})
}

// add adds text to the current item, or to a new one.
func (r *Run) add(kind, part, s string, likely []json.RawMessage) {
	if !r.grown(len(s)) {
		return
	}
	if r.current == nil || r.current.kind != kind {
		r.say(kind)
	}
	o := r.current
	p := o.part(r, part)
	p.text.WriteString(s)
	p.likely = append(p.likely, likely...)
	r.events = append(r.events, o.grown(part, s, likely))
}

// grown is the event that tells of more text: nearly all events of a stream are such, so it is written in one go.
func (o *output) grown(part, s string, likely []json.RawMessage) Event {
	b := make([]byte, 0, 96+len(o.id)+len(s))
	b = append(append(append(b, `"item_id":"`...), o.id...), `","output_index":`...)
	b = strconv.AppendInt(b, int64(o.index), 10)
	kind, index := "response.output_text.delta", `,"content_index":`
	switch part {
	case partSummary:
		kind, index = "response.reasoning_summary_text.delta", `,"summary_index":`
	case partRefusal:
		kind = "response.refusal.delta"
	case partThought:
		kind = "response.reasoning_text.delta"
	}
	b = strconv.AppendInt(append(b, index...), int64(len(o.parts)-1), 10)
	b = appendQuoted(append(b, `,"delta":`...), s)
	switch {
	case part == partText && len(likely) == 0:
		b = append(b, `,"logprobs":[]`...)
	case part == partText:
		b = append(append(b, `,"logprobs":`...), array(likely)...)
	}
	return Event{Type: kind, Body: b}
}

// part is the piece that is being written, or a new one.
func (o *output) part(r *Run, kind string) *piece {
	if n := len(o.parts); n > 0 {
		if last := o.parts[n-1]; last.kind == kind && !last.closed {
			return last
		}
		o.closePart(r)
	}
	o.parts = append(o.parts, &piece{kind: kind})
	event := "response.content_part.added"
	if kind == partSummary {
		event = "response.reasoning_summary_part.added"
	}
	r.emit(event, append(o.place(kind), pair{"part", o.parts[len(o.parts)-1].json()})...)
	return o.parts[len(o.parts)-1]
}

// place says where the last piece is.
func (o *output) place(kind string) []pair {
	index := "content_index"
	if kind == partSummary {
		index = "summary_index"
	}
	return []pair{{"item_id", o.id}, {"output_index", o.index}, {index, len(o.parts) - 1}}
}

// named begins the events of a piece.
func (o *output) named(kind string) string {
	if kind == partSummary {
		return "response.reasoning_summary_text"
	}
	return "response." + kind
}

// closePart ends the last piece.
func (o *output) closePart(r *Run) {
	if len(o.parts) == 0 {
		return
	}
	p := o.parts[len(o.parts)-1]
	if p.closed {
		return
	}
	p.closed = true
	said := "text"
	if p.kind == partRefusal {
		said = "refusal"
	}
	list := append(o.place(p.kind), pair{said, p.text.String()})
	if p.kind == partText {
		list = append(list, pair{"logprobs", array(p.likely)})
	}
	r.emit(o.named(p.kind)+".done", list...)
	event := "response.content_part.done"
	if p.kind == partSummary {
		event = "response.reasoning_summary_part.done"
	}
	r.emit(event, append(o.place(p.kind), pair{"part", p.json()})...)
}

func (p *piece) json() json.RawMessage {
	switch p.kind {
	case partRefusal:
		return object(pair{"type", p.kind}, pair{"refusal", p.text.String()})
	case partText:
		return object(pair{"type", p.kind}, pair{"annotations", json.RawMessage("[]")}, pair{"logprobs", array(p.likely)}, pair{"text", p.text.String()})
	}
	return object(pair{"type", p.kind}, pair{"text", p.text.String()})
}

// close ends the item; it is complete unless the response ended in it as anything else.
func (o *output) close(r *Run, s Status) {
	if o.status != "in_progress" {
		return
	}
	o.status = "completed"
	if s != Completed {
		o.status = "incomplete"
	}
	if o.kind == typeMessage || o.kind == typeReasoning {
		o.closePart(r)
	} else {
		o.closeCall(r)
	}
	r.emit("response.output_item.done", pair{"output_index", o.index}, pair{"item", o.json(r)})
}

// json is the item as it stands.
func (o *output) json(*Run) json.RawMessage {
	head := []pair{{"id", o.id}, {"type", o.kind}}
	var content, summary []json.RawMessage
	for _, p := range o.parts {
		if p.kind == partSummary {
			summary = append(summary, p.json())
		} else {
			content = append(content, p.json())
		}
	}
	switch o.kind {
	case typeMessage:
		return object(append(head, pair{"status", o.status}, pair{"role", roleAssistant}, pair{"content", array(content)})...)
	case typeReasoning:
		head = append(head, pair{"summary", array(summary)})
		if len(content) > 0 {
			head = append(head, pair{"content", array(content)})
		}
		return object(append(head, pair{"encrypted_content", nil}, pair{"status", o.status})...)
	}
	return o.callJSON(head)
}
