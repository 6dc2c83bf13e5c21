package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"

	"iop/edged/openai/pieces"
)

// Stream takes the next bytes of a chat stream and gives those of the stream of messages. They are valid until the next
// call. Comments pass as they are: they are signs of life.
func (r *Run) Stream(p []byte) []byte {
	r.out = r.out[:0]
	if r.failed == nil && !r.frames.Write(p, r.frame, r.comment) {
		r.broken("The provider sent an event that is too large.")
	}
	return r.out
}

// End gives the end of the stream. false: it is no good one, and the last event says why; the connection must be broken.
func (r *Run) End() ([]byte, bool) {
	r.out = r.out[:0]
	if r.finish == "" && !r.done {
		r.broken("The provider's answer broke off. Try again.")
	}
	if r.failed != nil {
		r.out = append(r.out, "event: error\ndata: "...)
		r.out = append(AppendError(r.out, 502, "", r.failed.Message, ""), "\n\n"...)
		return r.out, false
	}
	r.start()
	r.flushCalls()
	if r.index == 0 {
		r.open(blockText, `{"type":"text","text":""}`)
	}
	r.close()
	r.out = append(r.out, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""...)
	r.out = append(append(r.out, r.reason()...), "\",\"stop_sequence\":"...)
	if r.stop != "" {
		r.out = quote(r.out, r.stop)
	} else {
		r.out = append(r.out, "null"...)
	}
	r.out = append(r.appendUsage(append(r.out, "},\"usage\":"...)), "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
	return r.out, true
}

func (r *Run) comment(line []byte) { r.out = append(append(r.out, line...), "\n\n"...) }

// frame takes the data of an event.
func (r *Run) frame(data []byte) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0 || r.done || r.failed != nil:
		return
	case string(data) == "[DONE]":
		r.done = true
		return
	}
	c := &r.chunk
	if pieces.Read(data, c) != nil {
		r.broken("The provider sent an event that can't be read.")
		return
	}
	if c.Failed() {
		r.broken(theirs(c.Error))
		return
	}
	if u := c.Counted(); u != nil {
		r.usage = readUsage(u)
	}
	r.start()
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		if d := ch.Added(); d != nil {
			r.delta(d)
		}
		r.stopped(ch.Finish, ch.Stopped)
	}
}

// start sends the first event, once.
func (r *Run) start() {
	if r.started {
		return
	}
	r.started = true
	r.out = append(r.out, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"...)
	r.out = append(quote(r.out, r.id), `,"type":"message","role":"assistant","model":`...)
	r.out = append(quote(r.out, r.model), `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
	r.out = append(r.appendUsage(r.out), "}}\n\n"...)
}

func (r *Run) appendUsage(b []byte) []byte {
	u := &r.usage
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), u.Input, 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), u.Created, 10)
	b = strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), u.Cached, 10)
	return append(strconv.AppendInt(append(b, `,"output_tokens":`...), u.Output, 10), '}')
}

func (r *Run) delta(d *pieces.Delta) {
	if t := d.Thought(); t != "" {
		if r.kind != blockThinking {
			r.open(blockThinking, `{"type":"thinking","thinking":"","signature":""}`)
		}
		r.piece("thinking_delta", "thinking", t)
	}
	if t := d.Content + d.Refusal; t != "" {
		if r.kind != blockText {
			r.open(blockText, `{"type":"text","text":""}`)
		}
		r.piece("text_delta", "text", t)
	}
	for i := range d.ToolCalls {
		c := &d.ToolCalls[i]
		index := i
		if c.Index != nil {
			index = *c.Index
		}
		r.call(index, c)
	}
}

// open begins a block, and ends the one before it.
func (r *Run) open(kind blockKind, begun string) {
	r.close()
	r.kind = kind
	r.out = append(r.out, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	r.out = append(strconv.AppendInt(r.out, int64(r.index), 10), `,"content_block":`...)
	r.out = append(append(r.out, begun...), "}\n\n"...)
	r.index++
}

func (r *Run) close() {
	if r.kind == blockNone {
		return
	}
	r.kind = blockNone
	r.out = append(r.out, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	r.out = append(strconv.AppendInt(r.out, int64(r.index-1), 10), "}\n\n"...)
}

// piece adds to the block that is open.
func (r *Run) piece(kind, key, text string) {
	r.out = append(r.out, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	r.out = strconv.AppendInt(r.out, int64(r.index-1), 10)
	r.out = append(append(r.out, `,"delta":{"type":"`...), kind...)
	r.out = append(append(append(r.out, `","`...), key...), `":`...)
	r.out = append(quote(r.out, text), "}}\n\n"...)
}

// quote appends s as a JSON string.
func quote(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			plain = false
			break
		}
	}
	if plain { // nearly every piece of a stream is, and costs nothing but its copy
		return append(append(append(b, '"'), s...), '"')
	}
	q, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // a string can always be written
	}
	return append(b, q...)
}
