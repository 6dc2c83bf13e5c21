package pieces

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// reader reads plain JSON (RFC 8259) in one pass. Each method takes one value and tells whether it was of the plain kind
// that it is for; after a false nothing more can be read.
type reader struct {
	b     []byte
	at    int
	depth int
}

// depthMax bounds how deeply values lie in each other.
const depthMax = 32

func (r *reader) space() {
	for r.at < len(r.b) && (r.b[r.at] == ' ' || r.b[r.at] == '\n' || r.b[r.at] == '\t' || r.b[r.at] == '\r') {
		r.at++
	}
}

// take takes a character, and the space before it, if it comes next.
func (r *reader) take(c byte) bool {
	r.space()
	if r.at < len(r.b) && r.b[r.at] == c {
		r.at++
		return true
	}
	return false
}

// word takes a literal.
func (r *reader) word(w string) bool {
	if len(r.b)-r.at >= len(w) && string(r.b[r.at:r.at+len(w)]) == w {
		r.at += len(w)
		return true
	}
	return false
}

func (r *reader) null() bool {
	r.space()
	return r.word("null")
}

// object calls member for each, at its value.
func (r *reader) object(member func(name []byte) bool) bool {
	return r.list('{', '}', func() bool {
		name, ok := r.plain()
		return ok && r.take(':') && member(name)
	})
}

// array calls each at each value.
func (r *reader) array(each func() bool) bool { return r.list('[', ']', each) }

func (r *reader) list(open, end byte, each func() bool) bool {
	if r.depth++; r.depth > depthMax || !r.take(open) {
		return false
	}
	defer func() { r.depth-- }()
	if r.take(end) {
		return true
	}
	for each() {
		if r.take(end) {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
	return false
}

// plain takes a string without escapes, and gives what is in it.
func (r *reader) plain() ([]byte, bool) {
	if !r.take('"') {
		return nil, false
	}
	from, ascii := r.at, true
	for ; r.at < len(r.b); r.at++ {
		switch c := r.b[r.at]; {
		case c == '"':
			s := r.b[from:r.at]
			r.at++
			return s, ascii || utf8.Valid(s)
		case c < ' ', c == '\\':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// text takes a string or null, which leaves it as it is.
func (r *reader) text(to *string) bool {
	if r.null() {
		return true
	}
	s, ok := r.plain()
	*to = string(s)
	return ok
}

// small takes a number of one digit, or null.
func (r *reader) small(to *int) bool {
	if r.null() {
		return true
	}
	if r.at+1 >= len(r.b) || !digit(r.b[r.at]) {
		return false
	}
	switch c := r.b[r.at+1]; c {
	case ',', '}', ' ':
	default:
		return false
	}
	*to = int(r.b[r.at] - '0')
	r.at++
	return true
}

// raw takes any value as it stands.
func (r *reader) raw(to *json.RawMessage) bool {
	r.space()
	from := r.at
	if !r.value() {
		return false
	}
	*to = bytes.Clone(r.b[from:r.at])
	return true
}

// other takes a member that nobody asks for. One that encoding/json would take for another in spite of its letters is
// none of them.
func (r *reader) other(name []byte, known ...string) bool {
	if slices.ContainsFunc(known, func(k string) bool { return bytes.EqualFold(name, []byte(k)) }) {
		return false
	}
	return r.value()
}

// value takes any value.
func (r *reader) value() bool {
	r.space()
	if r.at >= len(r.b) {
		return false
	}
	switch c := r.b[r.at]; c {
	case '{':
		return r.object(func([]byte) bool { return r.value() })
	case '[':
		return r.array(r.value)
	case '"':
		_, ok := r.plain()
		return ok
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	}
	return r.number()
}

func (r *reader) number() bool {
	if r.b[r.at] == '-' {
		r.at++
	}
	if r.at < len(r.b) && r.b[r.at] == '0' {
		r.at++
	} else if !r.digits() {
		return false
	}
	if r.at < len(r.b) && r.b[r.at] == '.' {
		r.at++
		if !r.digits() {
			return false
		}
	}
	if r.at < len(r.b) && (r.b[r.at] == 'e' || r.b[r.at] == 'E') {
		r.at++
		if r.at < len(r.b) && (r.b[r.at] == '+' || r.b[r.at] == '-') {
			r.at++
		}
		return r.digits()
	}
	return true
}

// digits takes at least one.
func (r *reader) digits() bool {
	from := r.at
	for r.at < len(r.b) && digit(r.b[r.at]) {
		r.at++
	}
	return r.at > from
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
