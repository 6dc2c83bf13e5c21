package respond

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// encode writes a value of ours as JSON, without HTML's escapes. It can't fail for what is given to it here: no
// channels, functions or cycles, and raw parts that were read as JSON before.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// quote is s as a JSON string.
func quote(s string) json.RawMessage { return encode(s) }

// appendQuoted adds s as a JSON string. Nearly every piece of a stream is plain, and costs nothing but its copy.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, quote(s)...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// pair is a member of an object that is written in a given order.
type pair struct {
	name  string
	value any // json.RawMessage and []byte as they are
}

// members writes members in order, without the braces around them.
func members(b []byte, list ...pair) []byte {
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), m.name...), '"', ':')
		switch v := m.value.(type) {
		case json.RawMessage:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case string:
			b = appendQuoted(b, v)
		default:
			b = append(b, encode(v)...)
		}
	}
	return b
}

// object writes members in order as an object.
func object(list ...pair) json.RawMessage { return append(members([]byte{'{'}, list...), '}') }

// array writes values as an array.
func array[T ~[]byte](list []T) json.RawMessage {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
