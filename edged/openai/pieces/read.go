package pieces

import (
	"encoding/json"
)

// Read reads the data of an event, or a whole answer, into c, and keeps nothing of data. Most pieces of a stream have the
// same few members: these are read in one pass, with what c has room for used again. Whatever looks otherwise (escapes,
// logprobs, members named twice or in other letters, faults) is left to encoding/json, so both always agree.
func Read(data []byte, c *Chunk) error {
	c.reset()
	r := reader{b: data}
	if r.chunk(c) {
		return nil
	}
	*c = Chunk{}
	return json.Unmarshal(data, c)
}

// reset empties the chunk and keeps its room.
func (c *Chunk) reset() {
	*c = Chunk{Choices: c.Choices[:0]}
}

// more makes room for a choice.
func (c *Chunk) more() *Choice {
	if n := len(c.Choices); n < cap(c.Choices) {
		c.Choices = c.Choices[:n+1]
	} else {
		c.Choices = append(c.Choices, Choice{})
	}
	x := &c.Choices[len(c.Choices)-1]
	room := x.room
	*x = Choice{room: room}
	if x.room == nil {
		x.room = new(Delta)
	}
	return x
}

// chunk reads the whole of the data; false: it is none of the plain ones.
func (r *reader) chunk(c *Chunk) bool {
	var seen names
	ok := r.object(func(name []byte) bool {
		switch string(name) {
		case "choices":
			return seen.first(0) && r.choices(c)
		case "usage":
			return seen.first(1) && r.raw(&c.Usage)
		case "error":
			return seen.first(2) && r.raw(&c.Error)
		}
		return r.other(name, "choices", "usage", "error")
	})
	r.space()
	return ok && r.at == len(r.b)
}

func (r *reader) choices(c *Chunk) bool {
	return r.array(func() bool {
		x := c.more()
		var seen names
		return r.object(func(name []byte) bool {
			switch string(name) {
			case "index":
				return seen.first(0) && r.small(&x.Index)
			case "delta":
				return seen.first(1) && r.delta(x)
			case "finish_reason":
				return seen.first(2) && r.text(&x.Finish)
			case "stop_reason":
				return seen.first(3) && r.raw(&x.Stopped)
			case "logprobs":
				return seen.first(4) && r.null()
			}
			return r.other(name, "index", "delta", "message", "finish_reason", "stop_reason", "logprobs")
		})
	})
}

func (r *reader) delta(x *Choice) bool {
	if r.null() {
		return true
	}
	d := x.room
	*d, x.Delta = Delta{}, d
	var seen names
	return r.object(func(name []byte) bool {
		switch string(name) {
		case "content":
			return seen.first(0) && r.text(&d.Content)
		case "refusal":
			return seen.first(1) && r.text(&d.Refusal)
		case "reasoning_content":
			return seen.first(2) && r.text(&d.Reasoning)
		case "reasoning":
			return seen.first(3) && r.text(&d.Thinking)
		}
		return r.other(name, "content", "refusal", "reasoning_content", "reasoning", "tool_calls")
	})
}

// names are the members that an object has had.
type names uint8

// first tells whether the member is there for the first time.
func (n *names) first(i int) bool {
	had := *n&(1<<i) != 0
	*n |= 1 << i
	return !had
}
