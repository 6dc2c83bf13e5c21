package respond

import (
	"bytes"
	"encoding/json"

	"iop/edged/openai/pieces"
)

// frame takes the data of an event.
func (r *Run) frame(data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || r.done || r.failure != nil {
		return
	}
	if string(data) == "[DONE]" && !r.relays {
		r.done = true
		return
	}
	if r.relays {
		r.relay(data)
		return
	}
	if err := pieces.Read(data, &r.piece); err != nil {
		r.broken(codeServer, "The provider sent an event that can't be read.")
		return
	}
	r.chunk(&r.piece)
}

// comment takes a provider's sign of life: a model that reads a long prompt says nothing else for minutes, and agents take
// no comment for one. Once it has begun to answer, its words are signs enough.
func (r *Run) comment([]byte) {
	if len(r.outputs) == 0 && !r.done && r.failure == nil {
		r.events = append(r.events, r.Waiting())
	}
}

// readWhole takes an answer that is no stream.
func (r *Run) readWhole() {
	if r.relays {
		r.relayWhole(r.whole)
		return
	}
	var c pieces.Chunk
	if err := json.Unmarshal(r.whole, &c); err != nil {
		r.broken(codeServer, "The provider's answer can't be read.")
		return
	}
	r.whole = nil
	r.chunk(&c)
	if len(c.Choices) == 0 {
		r.broken(codeServer, "The provider's answer is empty.")
	}
	r.done = true // not every server says why it stopped
}

func (r *Run) chunk(c *pieces.Chunk) {
	if c.Failed() {
		r.broken(theirs(c.Error))
		return
	}
	if u := c.Counted(); u != nil {
		r.usage = readUsage(u)
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		if d := ch.Added(); d != nil {
			r.delta(d, ch.Logprobs)
		}
		if ch.Finish != "" {
			r.finish = ch.Finish
		}
	}
}

// theirs is a backend's own error.
func theirs(raw json.RawMessage) (code, message string) {
	var e struct {
		Code    any    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil {
		e.Message = text(raw)
	}
	code, _ = e.Code.(string) // some have a number there
	if code == "" {
		code = codeServer
	}
	if e.Message == "" {
		e.Message = "The provider failed. Try again."
	}
	return code, e.Message
}

// delta takes what a piece adds.
func (r *Run) delta(d *pieces.Delta, l *pieces.Logprobs) {
	if thought := d.Thought(); thought != "" {
		r.add(typeReasoning, r.thoughtPart(), thought, nil)
	}
	if d.Content != "" || l != nil && len(l.Content) > 0 {
		var likely []json.RawMessage
		if l != nil {
			likely = l.Content
		}
		r.add(typeMessage, partText, d.Content, likely)
	}
	if d.Refusal != "" {
		r.add(typeMessage, partRefusal, d.Refusal, nil)
	}
	for i := range d.ToolCalls {
		index := i
		if n := d.ToolCalls[i].Index; n != nil {
			index = *n
		}
		r.call(index, &d.ToolCalls[i])
	}
}
