package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// fields reads the members of one JSON object, each of the type that it must have. The first that is wrong is the
// problem of the whole request; later reads give zero values and change nothing.
type fields struct {
	at      string // where the object is: messages[0]; "" is the body
	raw     map[string]json.RawMessage
	problem **Problem
}

// path names a member.
func (f fields) path(name string) string {
	if f.at == "" {
		return name
	}
	return f.at + "." + name
}

// take removes a member and returns it; ok is false if it is absent or null.
func (f fields) take(name string) (raw json.RawMessage, ok bool) {
	raw, ok = f.raw[name]
	delete(f.raw, name)
	return raw, ok && !isNull(raw)
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// refuse notes a problem, if it is the first.
func (f fields) refuse(param, code, format string, args ...any) {
	if *f.problem == nil {
		*f.problem = &Problem{Status: http.StatusBadRequest, Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
	}
}

// mistyped notes that a value is not what it must be.
func (f fields) mistyped(param, want string, raw json.RawMessage) {
	f.refuse(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, typeOf(raw))
}

// missing notes that a member is not there.
func (f fields) missing(param string) {
	f.refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// typeOf names a value's type as OpenAI's messages do.
func typeOf(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || isNull(raw):
		return "null"
	case raw[0] == '"':
		return "a string"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	case bytes.ContainsAny(raw, ".eE"):
		return "a decimal"
	default:
		return "an integer"
	}
}

// text reads a string.
func (f fields) text(name string) string {
	raw, ok := f.take(name)
	if !ok {
		return ""
	}
	return f.asText(f.path(name), raw)
}

func (f fields) asText(param string, raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		f.mistyped(param, "a string", raw)
		return ""
	}
	return unquoted(raw)
}

// needed reads a string that must be there and not be empty.
func (f fields) needed(name string) string {
	s := f.text(name)
	if s == "" {
		f.missing(f.path(name))
	}
	return s
}

// oneOf reads a string that is one of few; "" if it is absent.
func (f fields) oneOf(name string, values ...string) string {
	s := f.text(name)
	if s != "" && !slices.Contains(values, s) {
		f.unknown(f.path(name), s, values)
		return ""
	}
	return s
}

// unknown notes a word that is none of those known.
func (f fields) unknown(param, got string, values []string) {
	f.refuse(param, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", got, strings.Join(values, "', '"))
}

// truth reads a boolean; nil if it is absent.
func (f fields) truth(name string) *bool {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	b := string(raw) == "true"
	if !b && string(raw) != "false" {
		f.mistyped(f.path(name), "a boolean", raw)
		return nil
	}
	return &b
}

// yes reads a boolean that is false if it is absent.
func (f fields) yes(name string) bool {
	b := f.truth(name)
	return b != nil && *b
}

// integer reads a whole number from least to most; nil if it is absent.
func (f fields) integer(name string, least, most int64) *int64 {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	param := f.path(name)
	n, ok := wholeNumber(raw)
	switch {
	case !ok:
		f.mistyped(param, "an integer", raw)
		return nil
	case n < least:
		f.refuse(param, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", param, least, n)
		return nil
	case n > most:
		f.refuse(param, "integer_above_max_value", "Invalid '%s': integer above maximum value. Expected a value <= %d, but got %d instead.", param, most, n)
		return nil
	}
	return &n
}

// wholeNumber reads 5, and 5.0 as well, which some clients write.
func wholeNumber(raw json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := decimal(raw)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// number reads a number from least to most; nil if it is absent.
func (f fields) number(name string, least, most float64) *float64 {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	param := f.path(name)
	v, err := decimal(raw)
	switch {
	case err != nil:
		f.mistyped(param, "a decimal", raw)
		return nil
	case v < least:
		f.refuse(param, "decimal_below_min_value", "Invalid '%s': decimal below minimum value. Expected a value >= %v, but got %v instead.", param, least, v)
		return nil
	case v > most:
		f.refuse(param, "decimal_above_max_value", "Invalid '%s': decimal above maximum value. Expected a value <= %v, but got %v instead.", param, most, v)
		return nil
	}
	return &v
}

// decimal reads a JSON number, and nothing else that strconv would read.
func decimal(raw json.RawMessage) (float64, error) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(string(raw), 64)
}

// object reads an object; ok is false if it is absent or none.
func (f fields) object(name string) (o fields, ok bool) {
	raw, ok := f.take(name)
	if !ok {
		return fields{}, false
	}
	return f.asObject(f.path(name), raw)
}

func (f fields) asObject(param string, raw json.RawMessage) (o fields, ok bool) {
	o = fields{at: param, problem: f.problem}
	if len(raw) == 0 || raw[0] != '{' {
		f.mistyped(param, "an object", raw)
		return o, false
	}
	o.raw = members(raw)
	return o, true
}

// list reads an array; ok is false if it is absent or none.
func (f fields) list(name string) (items []json.RawMessage, ok bool) {
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	return f.asList(f.path(name), raw)
}

func (f fields) asList(param string, raw json.RawMessage) (items []json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		f.mistyped(param, "an array", raw)
		return nil, false
	}
	return elements(raw), true
}

// schema reads a JSON schema: an object, kept as it is written; nil if it is absent.
func (f fields) schema(name string) json.RawMessage {
	raw, ok := f.take(name)
	if ok && raw[0] != '{' {
		f.mistyped(f.path(name), "an object", raw)
		return nil
	}
	if !ok {
		return nil
	}
	return raw
}

func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
