package respond

import (
	"bytes"
	"encoding/json"
)

// frames cuts an event stream (WHATWG HTML 9.2.6) into the data of its events, wherever the network has cut it.
type frames struct {
	line []byte // the line at hand, if it came in pieces
	data []byte // of the event at hand
	has  bool   // it has data
	cr   bool   // the last byte was a CR that ended a line
}

// write takes the next bytes and calls each for the data of every event that is whole, and comment for every comment.
// false: an event is too large.
func (f *frames) write(p []byte, each func(data []byte), comment func()) bool {
	for len(p) > 0 {
		if f.cr && p[0] == '\n' {
			p = p[1:]
		}
		f.cr = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			f.line = append(f.line, p...)
			return len(f.line)+len(f.data) <= frameMax
		}
		line := p[:end]
		if len(f.line) > 0 {
			f.line = append(f.line, line...)
			line = f.line
		}
		if len(line)+len(f.data) > frameMax {
			return false
		}
		f.cr = p[end] == '\r'
		p = p[end+1:]
		if len(line) > 0 && line[0] == ':' {
			comment()
		} else {
			f.ended(line, each)
		}
		f.line = f.line[:0]
	}
	return true
}

// ended takes a whole line.
func (f *frames) ended(line []byte, each func(data []byte)) {
	if len(line) == 0 {
		if f.has {
			each(f.data)
		}
		f.data, f.has = f.data[:0], false
		return
	}
	rest, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(rest) > 0 && rest[0] != ':' {
		return // another field
	}
	if f.has {
		f.data = append(f.data, '\n')
	}
	rest = bytes.TrimPrefix(rest, []byte(":"))
	f.data, f.has = append(f.data, bytes.TrimPrefix(rest, []byte(" "))...), true
}

// chunk is a piece of a chat stream, or a whole answer.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index    int       `json:"index"`
	Delta    *delta    `json:"delta"`
	Message  *delta    `json:"message"`
	Finish   string    `json:"finish_reason"`
	Logprobs *logprobs `json:"logprobs"`
}

type delta struct {
	Content   string      `json:"content"`
	Refusal   string      `json:"refusal"`
	Reasoning string      `json:"reasoning_content"`
	Thinking  string      `json:"reasoning"` // what some servers call it
	ToolCalls []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type logprobs struct {
	Content []json.RawMessage `json:"content"`
}

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
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		r.broken(codeServer, "The provider sent an event that can't be read.")
		return
	}
	r.chunk(&c)
}

// comment takes a provider's sign of life: a model that reads a long prompt says nothing else for minutes, and agents take
// no comment for one. Once it has begun to answer, its words are signs enough.
func (r *Run) comment() {
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
	var c chunk
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

func (r *Run) chunk(c *chunk) {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		r.broken(theirs(c.Error))
		return
	}
	if len(c.Usage) > 0 && c.Usage[0] == '{' {
		r.usage = readUsage(c.Usage)
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		d := ch.Delta
		if d == nil {
			d = ch.Message
		}
		if d != nil {
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
func (r *Run) delta(d *delta, l *logprobs) {
	thought := d.Reasoning
	if thought == "" {
		thought = d.Thinking
	}
	if thought != "" {
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
