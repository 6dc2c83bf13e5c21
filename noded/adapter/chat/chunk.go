package chat

import "strconv"

// A chunk of a stream:
//
//	data: {"id":…,"object":…,"created":…,"model":…,"system_fingerprint":…,"choices":[{"index":0,"delta":{…},"logprobs":null,"finish_reason":null}]}
//
// begin writes it up to the delta, closeChoice what follows it in the choice, endChunk the rest. They build it by hand,
// for there is one per token.

// appendPrefix writes a chunk up to its choices.
func (w *Writer) appendPrefix(b []byte) []byte {
	if w.prefix == nil {
		p := appendQuoted([]byte(`data: {"id":`), w.o.ID)
		object := "chat.completion.chunk"
		if w.q.Endpoint == Completion {
			object = "text_completion"
		}
		p = appendQuoted(append(p, `,"object":`...), object)
		p = strconv.AppendInt(append(p, `,"created":`...), w.o.Created.Unix(), 10)
		p = appendQuoted(append(p, `,"model":`...), w.o.Model)
		p = append(p, `,"system_fingerprint":`...)
		if w.o.Fingerprint == "" {
			p = append(p, "null"...)
		} else {
			p = appendQuoted(p, w.o.Fingerprint)
		}
		w.prefix = append(p, `,"choices":[`...)
	}
	return append(b, w.prefix...)
}

// begin writes a chunk of c up to the value of its delta, or of older completions up to its text. The first chunk of a
// chat choice is the role's.
func (w *Writer) begin(c *choice) []byte {
	w.open()
	if !c.opened {
		c.opened = true
		if w.q.Endpoint == Chat {
			b := append(w.appendChoice(c), `{"role":"assistant","content":"","refusal":null}`...)
			w.buf = w.closeChoice(b, nil, "")
			w.endChunk()
		}
	}
	return w.appendChoice(c)
}

func (w *Writer) appendChoice(c *choice) []byte {
	b := w.appendPrefix(w.buf)
	if w.q.Endpoint == Completion {
		return append(b, `{"text":`...)
	}
	b = strconv.AppendInt(append(b, `{"index":`...), int64(c.index), 10)
	return append(b, `,"delta":`...)
}

// closeChoice ends the choice of a chat chunk; reason "" is null.
func (w *Writer) closeChoice(b []byte, tokens []TokenLogprob, reason string) []byte {
	b = append(b, `,"logprobs":`...)
	if len(tokens) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, `{"content":`...), mustJSON(chatTokens(tokens))...), `,"refusal":null}`...)
	}
	return append(appendReason(b, reason), '}')
}

func appendReason(b []byte, reason string) []byte {
	b = append(b, `,"finish_reason":`...)
	if reason == "" {
		return append(b, "null"...)
	}
	return appendQuoted(b, reason)
}

// appendTextChoice ends the choice of a chunk of older completions, from its text on.
func appendTextChoice(b []byte, c *choice, text string, tokens []TokenLogprob, reason string) []byte {
	b = append(appendQuoted(b, text), `,"index":`...)
	b = strconv.AppendInt(b, int64(c.index), 10)
	b = append(b, `,"logprobs":`...)
	if len(tokens) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(b, mustJSON(textTokens(tokens, &c.offset))...)
	}
	return append(appendReason(b, reason), '}')
}

// endChunk ends the chunk that is last in the buffer.
func (w *Writer) endChunk() {
	w.buf = append(w.buf, ']')
	if w.q.IncludeUsage {
		w.buf = append(w.buf, `,"usage":null`...)
	}
	w.buf = append(w.buf, "}\n\n"...)
}

// delta sends a chunk with one text in its delta.
func (w *Writer) delta(c *choice, name, s string, tokens []TokenLogprob) error {
	b := append(w.begin(c), `{"`...)
	b = append(append(b, name...), `":`...)
	b = append(appendQuoted(b, s), '}')
	return w.send(w.closeChoice(b, tokens, ""))
}

// heldBytesMax bounds what is held.
const heldBytesMax = 32 << 10

// send ends the chunk in b and sends the buffer, unless it is held.
func (w *Writer) send(b []byte) error {
	w.buf = b
	w.endChunk()
	if w.held && len(w.buf) < heldBytesMax {
		w.owed = true
		return w.err
	}
	return w.flush()
}

// flush sends what has been rendered, in one piece.
func (w *Writer) flush() error {
	if w.open(); w.err == nil && len(w.buf) > 0 {
		w.err = w.a.Data(w.buf)
	}
	w.buf, w.owed = w.buf[:0], false
	return w.err
}
