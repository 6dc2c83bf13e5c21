package respond

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// form is what a parameter must look like.
type form struct {
	want  string // in words
	first string // what its JSON may begin with
	whole bool   // a number without a fraction
	least int64  // of whole numbers
	most  float64
	enum  []string
}

// forms are the parameters whose form is checked here. Those that hold more are read by their own code.
var forms = map[string]form{
	"background":             {want: "a boolean", first: "tf"},
	"store":                  {want: "a boolean", first: "tf"},
	"stream":                 {want: "a boolean", first: "tf"},
	"parallel_tool_calls":    {want: "a boolean", first: "tf"},
	"temperature":            {want: "a decimal", first: "-0123456789", most: 2},
	"top_p":                  {want: "a decimal", first: "-0123456789", most: 1},
	"max_output_tokens":      {want: "an integer", first: "-0123456789", whole: true, least: 1},
	"max_tool_calls":         {want: "an integer", first: "-0123456789", whole: true, least: 1},
	"top_logprobs":           {want: "an integer", first: "-0123456789", whole: true, most: 20},
	"model":                  {want: "a string", first: `"`},
	"user":                   {want: "a string", first: `"`},
	"safety_identifier":      {want: "a string", first: `"`},
	"prompt_cache_key":       {want: "a string", first: `"`},
	"prompt_cache_retention": {want: "a string", first: `"`},
	"previous_response_id":   {want: "a string", first: `"`},
	"service_tier":           {want: "a string", first: `"`},
	"truncation":             {want: "a string", first: `"`, enum: []string{"auto", "disabled"}},
	"metadata":               {want: "an object", first: "{"},
	"stream_options":         {want: "an object", first: "{"},
	"reasoning":              {want: "an object", first: "{"},
	"text":                   {want: "an object", first: "{"},
	"tools":                  {want: "an array", first: "["},
	"include":                {want: "an array", first: "["},
	"instructions":           {want: "a string", first: `"`},
	"input":                  {want: "a string or an array of items", first: `"[`},
	"tool_choice":            {want: "a string or an object", first: `"{`},
}

// check holds every field against its form. null is as good as absent.
func check(fields map[string]json.RawMessage) *Problem {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f, known := forms[name]
		if !known {
			continue
		}
		if string(fields[name]) == "null" {
			delete(fields, name)
			continue
		}
		if p := f.check(name, fields[name]); p != nil {
			return p
		}
	}
	return nil
}

func (f *form) check(name string, raw json.RawMessage) *Problem {
	if !slices.Contains([]byte(f.first), raw[0]) {
		return wrongType(name, f.want, raw)
	}
	if f.first == `"` && f.enum != nil {
		if s := text(raw); !slices.Contains(f.enum, s) {
			return wrongValue(name, s, f.enum)
		}
	}
	if f.first[0] != '-' {
		return nil
	}
	if f.whole {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return wrongType(name, f.want, raw)
		}
		if n < f.least {
			return &Problem{Code: CodeBelow, Param: name, Message: fmt.Sprintf("Invalid '%s': integer below minimum value. Expected a value >= %d, but got %d instead.", name, f.least, n)}
		}
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || f.most > 0 && n > f.most {
		return &Problem{Code: CodeValue, Param: name, Message: fmt.Sprintf("Invalid '%s': expected a value between 0 and %g, but got %s instead.", name, f.most, short(string(raw)))}
	}
	return nil
}

// text is what a JSON string says; "" for all that is none.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // checked before
	return s
}
