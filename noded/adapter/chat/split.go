package chat

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// members and elements take an object or an array apart without copying its values: a body with pictures is large. What
// they get is valid JSON, as json.Valid found when the body came.

// members are the members of an object; of a name that is there twice the last counts, as in encoding/json.
func members(object json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := next(object, 1); object[i] != '}'; {
		end := skip(object, i)
		name := unquoted(object[i:end])
		i = next(object, next(object, end)+1) // behind the colon
		end = skip(object, i)
		out[name] = object[i:end:end]
		i = next(object, end)
		if object[i] == ',' {
			i = next(object, i+1)
		}
	}
	return out
}

// elements are the elements of an array.
func elements(array json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	for i := next(array, 1); array[i] != ']'; {
		end := skip(array, i)
		out = append(out, array[i:end:end])
		i = next(array, end)
		if array[i] == ',' {
			i = next(array, i+1)
		}
	}
	return out
}

// next is where the next thing that is no space is.
func next(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' {
		i++
	}
	return i
}

// skip is where the value that begins at i ends.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipText(b, i)
	case '{', '[':
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipText(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// skipText is where the string that begins at i ends.
func skipText(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// unquoted is the text of a JSON string.
func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // valid, so it can't fail
	return s
}
