package openai

import (
	"bytes"
	"encoding/json"
)

// modelled has the whole name of the model; p[i] is its closing quote.
func (r *reader) modelled(p []byte, i int) {
	r.held = append(r.held, p[r.start:i+1]...)
	if r.isServed(r.held) {
		r.out = append(r.out, r.to...)
	} else {
		r.out = append(r.out, r.held...)
	}
	r.held, r.start, r.doc = r.held[:0], i+1, docOpen
}

// giveUp lets go of a name that is too long to be the served one; the rest of it is a string like any other.
func (r *reader) giveUp(p []byte, i int) {
	if len(r.held)+i+1-r.start <= 6*len(r.from)+1 {
		return
	}
	r.release(p, i+1)
	r.doc = docString
}

// release sends what is held back as it came, up to p[i].
func (r *reader) release(p []byte, i int) {
	r.out = append(append(r.out, r.held...), p[r.start:i]...)
	r.held, r.start = r.held[:0], i
}

// isServed tells whether a JSON string is the served name.
func (r *reader) isServed(quoted []byte) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Equal(quoted[1:len(quoted)-1], r.from)
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == string(r.from)
}
