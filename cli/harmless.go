package cli

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// harmless writes what could steer a terminal in JSON as an escape. The encoder does so below U+0020 only: DEL, the controls from
// U+0080 on (of which U+009B begins a sequence as ESC [ does) and marks that turn the direction of writing it leaves as they are.
// They can only be inside of texts, so the JSON says the same.
func harmless(text []byte) []byte {
	bad := func(r rune) bool { return r == 0x7f || r > 0x7f && unicode.In(r, unicode.Cc, unicode.Cf) }
	if bytes.IndexFunc(text, bad) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case !bad(r):
			out = append(out, text[:n]...)
		case r > 0xffff: // two halves
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}
