package backend

import (
	"encoding/json"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func huge(n int) string {
	const line = "All work and no play makes a dull test. "
	return strings.Repeat(line, n/len(line)+1)[:n]
}

// Frames are the SSE frames that the plan's run sends for a model, the closing [DONE] included. Path is the
// request's, such as /v1/chat/completions.
func (p *Plan) Frames(path, model string) [][]byte {
	var out [][]byte
	add := func(s string) {
		if p.Comments {
			s = ": beat\r\n\r\n" + strings.ReplaceAll(s, "\n\n", "\r\n\r\n")
		}
		out = append(out, []byte(s))
	}
	for i, t := range p.tokens() {
		add("data: " + chunk(path, model, i, t, "null") + "\n\n")
	}
	add("data: " + chunk(path, model, -1, "", `"stop"`) + "\n\n")
	if p.Usage {
		add(`data: {"id":"run-1","object":"chat.completion.chunk","created":1,"model":` + quote(model) +
			`,"choices":[],"usage":` + p.usage() + "}\n\n")
	}
	add("data: [DONE]\n\n")
	return out
}

// Plain is the body of the plan's answer to a request that does not stream.
func (p *Plan) Plain(path, model string) []byte {
	text := strings.Join(p.tokens(), "")
	usage := ""
	if p.Usage {
		usage = `,"usage":` + p.usage()
	}
	switch {
	case strings.HasSuffix(path, "/embeddings"):
		return []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.25]}],"model":` +
			quote(model) + `,"usage":{"prompt_tokens":2,"total_tokens":2}}`)
	case strings.HasSuffix(path, "/chat/completions"):
		return []byte(`{"id":"run-1","object":"chat.completion","created":1,"model":` + quote(model) +
			`,"choices":[{"index":0,"message":{"role":"assistant","content":` + quote(text) + `},"finish_reason":"stop"}]` + usage + `}`)
	}
	return []byte(`{"id":"run-1","object":"text_completion","created":1,"model":` + quote(model) +
		`,"choices":[{"index":0,"text":` + quote(text) + `,"finish_reason":"stop"}]` + usage + `}`)
}

func (p *Plan) usage() string {
	n := len(p.tokens())
	return `{"prompt_tokens":5,"completion_tokens":` + itoa(n) + `,"total_tokens":` + itoa(n+5) + `}`
}

// chunk is one frame's JSON; i counts tokens from 0, -1 is the chunk that finishes.
func chunk(path, model string, i int, text, finish string) string {
	if !strings.HasSuffix(path, "/chat/completions") {
		return `{"id":"run-1","object":"text_completion","created":1,"model":` + quote(model) +
			`,"choices":[{"index":0,"text":` + quote(text) + `,"finish_reason":` + finish + `}]}`
	}
	delta := `{"content":` + quote(text) + `}`
	switch i {
	case 0:
		delta = `{"role":"assistant","content":` + quote(text) + `}`
	case -1:
		delta = `{}`
	}
	return `{"id":"run-1","object":"chat.completion.chunk","created":1,"model":` + quote(model) +
		`,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}

func errorBody(status int, message string) []byte {
	return []byte(`{"error":{"message":` + quote(message) + `,"type":"server_error","param":null,"code":"backend_` + itoa(status) + `"}}`)
}
