package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// spoken is an answer as a client understands it, and what of it is not OpenAI's shape.
type spoken struct {
	answer
	choices []*choiceSpoken
	usage   *usageSpoken
	vectors int
	pieces  int      // chunks with text
	faults  []string // what a client would stumble over
}

type choiceSpoken struct {
	role, text, reasoning, refusal, finish string
	calls                                  []callSpoken
	likely                                 int // tokens with logprobs
}

type callSpoken struct{ id, name, arguments string }

type usageSpoken struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
	Total      *int `json:"total_tokens"`
}

// piece is an answer in one piece, or a chunk of a stream.
type piece struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index          int
		Text           *string
		Message, Delta *turnSpoken
		Logprobs       *struct {
			Content []struct{ Token string }
			Tokens  []string
		}
		FinishReason *string `json:"finish_reason"`
	}
	Data []struct {
		Object    string
		Index     int
		Embedding []float32
	}
	Usage *usageSpoken
	Error json.RawMessage
}

type turnSpoken struct {
	Role, Content, Refusal string
	Reasoning              string `json:"reasoning_content"`
	ToolCalls              []struct {
		Index    int
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// hear reads an answer with status 200 to a request for a model at a path.
func hear(a answer, path, model string, stream, usage bool) *spoken {
	s := &spoken{answer: a}
	if !stream {
		s.take(a.body, path, model, false)
		s.wantf(s.usage != nil && s.usage.adds(path), "usage %+v", s.usage)
		s.finished(path)
		return s
	}
	s.wantf(strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream"), "Content-Type %q", a.header.Get("Content-Type"))
	all := frames(a.body)
	if len(all) == 0 || string(all[len(all)-1]) != "[DONE]" {
		s.wantf(false, "the stream lacks [DONE]")
		return s
	}
	for _, f := range all[:len(all)-1] {
		s.take(f, path, model, true)
	}
	s.wantf((s.usage != nil) == usage && (!usage || s.usage.adds(path)), "usage %+v, asked for: %v", s.usage, usage)
	s.finished(path)
	return s
}

func (s *spoken) wantf(ok bool, format string, args ...any) {
	if !ok {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// adds tells whether the counts are there and add up.
func (u *usageSpoken) adds(path string) bool {
	if u.Prompt == nil || u.Total == nil {
		return false
	}
	if strings.HasSuffix(path, "/embeddings") {
		return *u.Total == *u.Prompt
	}
	return u.Completion != nil && *u.Total == *u.Prompt+*u.Completion
}

// object is what an answer at a path calls itself.
func object(path string, chunk bool) string {
	switch {
	case strings.HasSuffix(path, "/embeddings"):
		return "list"
	case !strings.HasSuffix(path, "/chat/completions"):
		return "text_completion"
	case chunk:
		return "chat.completion.chunk"
	}
	return "chat.completion"
}

func (s *spoken) take(b []byte, path, model string, chunk bool) {
	var p piece
	if err := json.Unmarshal(b, &p); err != nil {
		s.wantf(false, "%v in %.200s", err, b)
		return
	}
	vectors := strings.HasSuffix(path, "/embeddings")
	s.wantf(p.Model == model, "model %q", p.Model)
	s.wantf(p.Object == object(path, chunk), "object %q", p.Object)
	s.wantf(vectors || p.ID != "" && p.Created > 0, "id %q, created %d", p.ID, p.Created)
	s.wantf(p.Error == nil || string(p.Error) == "null", "error %s", p.Error)
	for i, d := range p.Data {
		s.wantf(d.Object == "embedding" && d.Index == i && len(d.Embedding) > 0, "embedding %d: %+v", i, d)
		s.vectors++
	}
	if p.Usage != nil {
		s.wantf(s.usage == nil, "usage comes twice")
		s.wantf(!chunk || len(p.Choices) == 0, "usage comes with a choice")
		s.usage = p.Usage
	}
	for _, c := range p.Choices {
		for len(s.choices) <= c.Index {
			s.choices = append(s.choices, &choiceSpoken{})
		}
		to := s.choices[c.Index]
		s.wantf(to.finish == "", "choice %d goes on after its end", c.Index)
		before := len(to.text)
		if c.Text != nil {
			to.text += *c.Text
		}
		to.add(c.Message)
		to.add(c.Delta)
		if len(to.text) > before {
			s.pieces++
		}
		if c.Logprobs != nil {
			to.likely += len(c.Logprobs.Content) + len(c.Logprobs.Tokens)
		}
		if c.FinishReason != nil {
			to.finish = *c.FinishReason
		}
	}
}

func (c *choiceSpoken) add(t *turnSpoken) {
	if t == nil {
		return
	}
	if t.Role != "" {
		c.role = t.Role
	}
	c.text, c.reasoning, c.refusal = c.text+t.Content, c.reasoning+t.Reasoning, c.refusal+t.Refusal
	for i, call := range t.ToolCalls {
		at := max(call.Index, i)
		for len(c.calls) <= at {
			c.calls = append(c.calls, callSpoken{})
		}
		to := &c.calls[at]
		to.id, to.name, to.arguments = to.id+call.ID, to.name+call.Function.Name, to.arguments+call.Function.Arguments
	}
}

// finished checks the choices' ends.
func (s *spoken) finished(path string) {
	if strings.HasSuffix(path, "/embeddings") {
		return
	}
	s.wantf(len(s.choices) > 0, "no choice")
	for i, c := range s.choices {
		s.wantf(slices.Contains([]string{"stop", "length", "tool_calls", "content_filter"}, c.finish), "choice %d ends with %q", i, c.finish)
		s.wantf(c.role == "assistant" || !strings.HasSuffix(path, "/chat/completions"), "choice %d has the role %q", i, c.role)
	}
}

// first is the first choice.
func (s *spoken) first() *choiceSpoken {
	if len(s.choices) == 0 {
		return &choiceSpoken{}
	}
	return s.choices[0]
}
