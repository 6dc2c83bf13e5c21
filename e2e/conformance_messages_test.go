package e2e

import (
	"strings"

	"iop/e2e/backend/talk"
)

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const badWord = "`unsupported_parameter`"

// says is the messages of a request in which a user says something.
func says(text string) string {
	return `"messages":[{"role":"user","content":` + quotedJSON(text) + `}]`
}

// script is the messages of a request that asks for a script; demo is the word by which the demo provider knows it.
func script(s talk.Script, demo string) string { return says(talk.Prompt(s, demo)) }

// messageConforms are about what is said to a model.
func messageConforms() []conform {
	return []conform{
		{name: "a text", body: says("hello"), real: true},
		{
			name: "roles: system, developer, user, assistant", real: true,
			body:   `"messages":[{"role":"system","content":"S"},{"role":"developer","content":"D"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
			native: []string{`messages.0.role="system"`, `messages.1.role="system"`, `messages.3.role="assistant"`, `messages.4.content="c"`},
		},
		{
			name: "an unknown role", real: true, body: `"messages":[{"role":"wizard","content":"a"}]`,
			usual: "400 `invalid_value` on `messages[0].role`", but: tunnels(asAsked),
		},
		{
			name: "content in parts", real: true, body: `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
			native: []string{`messages.0.content="a\nb"`},
		},
		{
			name: "an image", real: true, body: `"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + onePixel + `"}}]}]`,
			native: []string{`messages.0.images.0="` + onePixel + `"`},
			but:    map[string]string{"cli": "400 " + badWord + " on `messages[0].content`"},
		},
		{
			name: "an image to fetch", body: `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://127.0.0.1:1/a.png"}}]}]`,
			but: map[string]string{
				"cli":    "400 " + badWord + " on `messages[0].content`",
				"ollama": "400 `unsupported_value` on `messages[0].content[0].image_url.url`",
			},
		},
		{name: "Unicode", real: true, body: says("héllo 你好 🙂 שלום e\u0301 \u0001"), native: []string{`messages.0.content="héllo 你好 🙂 שלום e` + "\u0301" + ` \u0001"`}},
		{name: "a long prompt, 100 kB", body: says(strings.Repeat("all work and no play ", 5000))},
		{
			name: "a prompt beyond the context", real: true, body: says(strings.Repeat("all work and no play ", 8000) + talk.Prompt(talk.TooLong, "")),
			usual: "400 `context_length_exceeded` on `messages`",
			but:   map[string]string{"cli": "502 `provider_error`", "llamacpp": "400 `400`", "vllm": "400 `BadRequestError`, flat", "demo": "400 `context_length_exceeded`"},
		},
		{name: "user and metadata", real: true, body: says("a") + `,"user":"u","metadata":{"team":"x"}`},
		{name: "a parameter that nobody knows", real: true, body: says("a") + `,"x_own":{"deep":[1]}`},
		{
			name: "a parameter of the wrong type", real: true, body: says("a") + `,"temperature":"hot"`,
			usual: "400 `invalid_type` on `temperature`", but: map[string]string{"llamacpp": "400 `400`", "vllm": "400 `BadRequestError`, flat"},
		},
		{
			name: "an unknown model", real: true, body: says("a"), model: "nobody-serves-this", usual: "404 `model_not_found` on `model`",
		},
	}
}

// tunnels gives all tunnels the same cell.
func tunnels(cell string) map[string]string {
	return map[string]string{"openai_compat": cell, "vllm": cell, "llamacpp": cell}
}
