package anthropic

import "iop/edged/openai/pieces"

// call takes a piece of a tool's call. The first call that comes is streamed; those beside it wait for its end, since
// blocks come one after another and chat may mix the pieces of calls.
func (r *Run) call(index int, d *pieces.Call) {
	c := r.callOf(index)
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" {
		c.name = d.Function.Name
	}
	c.arguments = append(c.arguments, d.Function.Arguments...)
	if c != r.calls[0] || c.name == "" {
		if r.waiting += len(d.Function.Arguments); r.waiting > callsMax {
			r.broken("The provider's answer is too large.")
		}
		return
	}
	r.flush(c)
}

func (r *Run) callOf(index int) *call {
	for _, c := range r.calls {
		if c.index == index {
			return c
		}
	}
	c := &call{index: index}
	r.calls = append(r.calls, c)
	return c
}

// flush sends what has come of a call. A block that was closed by a text in between can't go on.
func (r *Run) flush(c *call) {
	if !c.open {
		c.open = true
		b := append([]byte(nil), `{"type":"tool_use","id":`...)
		b = append(quote(b, c.named(r)), `,"name":`...)
		r.open(blockCall, string(append(quote(b, c.name), `,"input":{}}`...)))
	} else if r.kind != blockCall && len(c.arguments) > 0 {
		r.broken("The provider mixed text into a tool's call.")
		return
	}
	if len(c.arguments) > 0 {
		r.piece("input_json_delta", "partial_json", string(c.arguments))
		c.arguments = c.arguments[:0]
	}
}

// named is the call's id; a backend that gives none leaves it to us.
func (c *call) named(r *Run) string {
	if c.id == "" {
		c.id = "toolu_" + r.id + "_" + string(rune('a'+c.index%26))
	}
	return c.id
}

// flushCalls sends all calls that wait.
func (r *Run) flushCalls() {
	for _, c := range r.calls {
		if c.open && len(c.arguments) == 0 {
			continue
		}
		r.flush(c)
	}
}
