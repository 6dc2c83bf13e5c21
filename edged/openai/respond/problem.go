package respond

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Problem is what is wrong with a request, in OpenAI's words: all of them are status 400.
type Problem struct {
	Code    string // error.code
	Param   string // error.param; "" = null
	Message string // the cause and the cure
}

// Codes of problems.
const (
	CodeType        = "invalid_type"
	CodeValue       = "invalid_value"
	CodeMissing     = "missing_required_parameter"
	CodeUnsupported = "unsupported_parameter"
	CodeBelow       = "integer_below_min_value"
)

func wrongType(param, want string, got json.RawMessage) *Problem {
	return &Problem{Code: CodeType, Param: param, Message: "Invalid type for '" + param + "': expected " + want + ", but got " + kindOf(got) + " instead."}
}

func wrongValue(param, got string, supported []string) *Problem {
	return &Problem{Code: CodeValue, Param: param, Message: "Invalid value for '" + param + "': " + strconv.Quote(short(got)) + ". Supported values are: '" + strings.Join(supported, "', '") + "'."}
}

func missing(param string) *Problem {
	return &Problem{Code: CodeMissing, Param: param, Message: "Missing required parameter: '" + param + "'."}
}

func unsupported(param, message string) *Problem {
	return &Problem{Code: CodeUnsupported, Param: param, Message: message}
}

// decode reads a value into v; a wrong type within is a problem of param, which the place in it is added to.
func decode(param string, raw json.RawMessage, v any) *Problem {
	err := json.Unmarshal(raw, v)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field != "" {
			param += "." + wrong.Field
		}
		return &Problem{Code: CodeType, Param: param, Message: "Invalid type for '" + param + "': expected " + named(wrong.Type.Kind().String()) + ", but got " + article(wrong.Value) + " instead."}
	}
	return &Problem{Code: CodeValue, Param: param, Message: "Invalid value for '" + param + "': " + err.Error() + "."}
}

// named is a Go kind in the words of JSON.
func named(kind string) string {
	switch kind {
	case "string":
		return "a string"
	case "bool":
		return "a boolean"
	case "slice":
		return "an array"
	case "struct", "map":
		return "an object"
	}
	return "a number"
}

func article(word string) string {
	word, _, _ = strings.Cut(word, " ")
	switch word {
	case "array", "object":
		return "an " + word
	case "bool":
		return "a boolean"
	}
	return "a " + word
}

// kindOf names the type of a JSON value.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "a decimal"
	}
	return "an integer"
}

// short keeps a client's words in messages short.
func short(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
