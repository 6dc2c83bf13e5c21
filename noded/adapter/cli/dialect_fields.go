package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"iop/noded/adapter/chat"
)

// Fields says where an answer is in the objects of an output. Each is a path of keys and list indexes with dots between
// them: choices.0.delta.content. An object that lacks a path says nothing about it.
type Fields struct {
	Text             string // a piece of the answer
	Final            string // the whole answer; counts if no piece came
	Reasoning        string
	Finish           string // stop, length or content_filter; anything else is stop
	Error            string // a text; its presence is a failure
	PromptTokens     string
	CompletionTokens string
}

// chunkFields are those of OpenAI's own stream.
func chunkFields() *Fields {
	return &Fields{
		Text: "choices.0.delta.content", Reasoning: "choices.0.delta.reasoning_content", Finish: "choices.0.finish_reason",
		Error: "error.message", PromptTokens: "usage.prompt_tokens", CompletionTokens: "usage.completion_tokens",
	}
}

// mapped reads objects by a mapping.
type mapped struct {
	f *Fields
	r *reply
}

func (m *mapped) object(line []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // not an object
	}
	m.count(v)
	if text, ok := at(v, m.f.Error); ok && text != "" {
		m.r.trouble, m.r.failed = text, true
		return nil
	}
	if reason, ok := at(v, m.f.Finish); ok {
		m.r.finish = map[string]string{"length": chat.FinishLength, "content_filter": chat.FinishFilter}[reason]
	}
	if text, ok := at(v, m.f.Reasoning); ok {
		if err := m.r.out.Reasoning(text); err != nil {
			return err
		}
	}
	if text, ok := at(v, m.f.Text); ok {
		return m.r.text(text)
	}
	if text, ok := at(v, m.f.Final); ok && !m.r.spoke {
		return m.r.text(text)
	}
	return nil
}

func (m *mapped) count(v any) {
	for _, c := range []struct {
		path string
		set  func(u *chat.Usage, n int64)
	}{
		{m.f.PromptTokens, func(u *chat.Usage, n int64) { u.Prompt = n }},
		{m.f.CompletionTokens, func(u *chat.Usage, n int64) { u.Completion = n }},
	} {
		text, _ := at(v, c.path)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			if m.r.usage == nil {
				m.r.usage = &chat.Usage{}
			}
			c.set(m.r.usage, n)
		}
	}
}

func (m *mapped) missing() string { return "" }

// at finds the text or number at a path.
func at(v any, path string) (string, bool) {
	if path == "" {
		return "", false
	}
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return "", false
			}
			v = in[i]
		default:
			return "", false
		}
	}
	switch leaf := v.(type) {
	case string:
		return leaf, true
	case json.Number:
		return leaf.String(), true
	}
	return "", false
}
