package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

	"iop/e2e/backend/talk"
)

func unmarshal(text string, into any) error { return json.Unmarshal([]byte(text), into) }

// generationConforms are about how an answer is made.
func generationConforms() []conform {
	unlikely := map[string]string{"cli": "400 " + badWord + " on `logprobs`"}
	long := says("hello") + `,"temperature":0`
	short := func(s *spoken) string {
		if c := s.first(); c.finish != "length" || c.text == "" {
			return fmt.Sprintf("text %q, finish %q", c.text, c.finish)
		}
		return ""
	}
	return []conform{
		{
			name: "stop", real: true, body: long + `,"stop":[" 2"," not"]`, native: []string{`options.stop=[" 2"," not"]`},
			check: func(s *spoken) string {
				if c := s.first(); c.text == "" || strings.Contains(c.text, " 2") || strings.Contains(c.text, " not") || c.finish != "stop" {
					return fmt.Sprintf("text %q, finish %q", c.text, c.finish)
				}
				return ""
			},
		},
		{name: "n = 2", real: true, body: long + `,"n":2`, but: map[string]string{"cli": "400 " + badWord + " on `n`"}, check: two},
		{name: "n = 2 in a stream", real: true, stream: true, usage: true, body: long + `,"n":2`, but: map[string]string{"cli": "400 " + badWord + " on `n`"}, check: two},
		{
			name: "seed, temperature, top_p, penalties", real: true, body: says("a") + `,"seed":7,"temperature":0.5,"top_p":0.9,"frequency_penalty":0.1,"presence_penalty":0.2`,
			native: []string{"options.seed=7", "options.temperature=0.5", "options.top_p=0.9", "options.frequency_penalty=0.1", "options.presence_penalty=0.2"},
		},
		{name: "logprobs", real: true, body: long + `,"logprobs":true,"top_logprobs":2`, but: unlikely, check: likelySaid, native: []string{"logprobs=true", "top_logprobs=2"}},
		{name: "logprobs in a stream", real: true, stream: true, body: long + `,"logprobs":true,"top_logprobs":2`, but: unlikely, check: likelySaid},
		{name: "max_tokens", real: true, body: long + `,"max_tokens":1`, check: short, but: map[string]string{"cli": leftOut}, native: []string{"options.num_predict=1"}},
		{name: "max_completion_tokens", real: true, body: long + `,"max_completion_tokens":1`, check: short, but: map[string]string{"cli": leftOut}, native: []string{"options.num_predict=1"}},
		{name: "json_object", body: script(talk.Object, "") + `,"response_format":{"type":"json_object"}`, check: isObject, native: []string{`format="json"`}},
		{
			name: "json_schema", body: script(talk.Object, "") + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`,
			check: isObject, native: []string{`format.type="object"`, `format.required=["a"]`},
		},
		{name: "reasoning_effort", real: true, body: script(talk.Think, "") + `,"reasoning_effort":"low"`, check: thoughtSaid, native: []string{`think="low"`}},
		{name: "reasoning_effort in a stream", stream: true, body: script(talk.Think, "") + `,"reasoning_effort":"low"`, check: thoughtSaid},
	}
}

func two(s *spoken) string {
	if len(s.choices) != 2 || s.choices[0].text == "" || s.choices[1].text == "" {
		return fmt.Sprintf("%d choices", len(s.choices))
	}
	return ""
}

func likelySaid(s *spoken) string {
	if c := s.first(); c.text == "" || c.likely == 0 {
		return fmt.Sprintf("text %q, %d logprobs", c.text, c.likely)
	}
	return ""
}

func isObject(s *spoken) string {
	var v map[string]any
	if err := unmarshal(s.first().text, &v); err != nil {
		return fmt.Sprintf("%q: %v", s.first().text, err)
	}
	return ""
}

func thoughtSaid(s *spoken) string {
	if c := s.first(); c.text == "" || c.reasoning == "" {
		return fmt.Sprintf("text %q, reasoning %q", c.text, c.reasoning)
	}
	return ""
}
