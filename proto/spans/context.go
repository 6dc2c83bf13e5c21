package spans

import (
	"encoding/hex"
	"strings"
)

// Context is a span as W3C Trace Context names it. The zero value is none.
type Context struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

// flagSampled is the flag that says that the caller may have recorded the trace.
const flagSampled = 1

// lengthOf a traceparent of version 00, in bytes:
//
//	00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//	version, trace id, span id, flags
const lengthOf = 55

// Valid tells whether there is a context at all.
func (c Context) Valid() bool { return c.Trace != [16]byte{} && c.Span != [8]byte{} }

// Sampled tells whether the caller may have recorded the trace.
func (c Context) Sampled() bool { return c.Flags&flagSampled != 0 }

// Parse reads a traceparent (https://www.w3.org/TR/trace-context/#traceparent-header). Of a version to come it takes what
// version 00 has. false: it is none, and a new trace is to begin. It does not allocate.
func Parse(s string) (c Context, ok bool) {
	if len(s) < lengthOf || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Context{}, false
	}
	var version, flags [1]byte
	if !unhex(version[:], s[:2]) || version[0] == 0xff || !unhex(c.Trace[:], s[3:35]) || !unhex(c.Span[:], s[36:52]) || !unhex(flags[:], s[53:55]) {
		return Context{}, false
	}
	if version[0] == 0 && len(s) != lengthOf || len(s) > lengthOf && s[lengthOf] != '-' || !c.Valid() {
		return Context{}, false
	}
	c.Flags = flags[0]
	return c, true
}

// unhex decodes lower-case digits, the only ones that are allowed.
func unhex(to []byte, s string) bool {
	for i := range to {
		high, ok1 := digit(s[2*i])
		low, ok2 := digit(s[2*i+1])
		if !ok1 || !ok2 {
			return false
		}
		to[i] = high<<4 | low
	}
	return true
}

func digit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// String is the context as a traceparent of version 00; "" for none.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	return string(c.append(make([]byte, 0, lengthOf)))
}

func (c Context) append(b []byte) []byte {
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	b = append(b, '-')
	return hex.AppendEncode(b, []byte{c.Flags & flagSampled})
}

// stateMax bounds a tracestate that is taken over, in bytes; W3C asks for 512 at least.
const stateMax = 512

// joinState makes one tracestate of the header's values; "" if it is too long.
func joinState(values []string) string {
	n := 0
	for _, v := range values {
		n += len(v) + 1
	}
	if n == 0 || n-1 > stateMax {
		return ""
	}
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values, ",")
}
