package chat

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendQuoted writes s as a JSON string. Unlike encoding/json it leaves <, > and & as they are, as OpenAI does; what is
// no UTF-8 becomes U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
			b = append(append(b, s[start:i]...), "\ufffd"...)
		} else {
			b = appendEscaped(append(b, s[start:i]...), c)
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// mustJSON encodes values of this package, which can't fail.
func mustJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("chat: encode an answer: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// carry keeps the beginning of a character until its rest comes.
type carry struct{ split string }

// whole returns what is whole of all that has come, and keeps the rest.
func (c *carry) whole(s string) string {
	if c.split != "" {
		s, c.split = c.split+s, ""
	}
	for i := len(s) - 1; i >= 0 && i >= len(s)-utf8.UTFMax; i-- {
		if !utf8.RuneStart(s[i]) {
			continue
		}
		if !utf8.FullRuneInString(s[i:]) {
			s, c.split = s[:i], s[i:]
		}
		break
	}
	return s
}

// rest gives up on what is kept: the characters of which the rest never came.
func (c *carry) rest() string {
	if c.split == "" {
		return ""
	}
	c.split = ""
	return "\ufffd"
}
