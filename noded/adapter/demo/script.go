package demo

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"iop/noded/adapter/chat"
)

// script is what each choice of an answer says.
type script struct {
	thoughts []string // reasoning, a word each
	words    []string
	refusal  string
	tool     *chat.ToolCall
	finish   string
	likely   bool // the words come with their logprobs
	fails    bool // after half of the words
	slow     bool // takes slowness times as long between words
}

// slowness makes of an answer that takes a second one during which an operator can look around.
const slowness = 20

// script decides what to answer.
func (d *Demo) script(q *chat.Request, size promptSize, window int64) (*script, *chat.Problem) {
	asked := lastUserText(q)
	s := &script{finish: chat.FinishStop, likely: q.Logprobs, slow: strings.Contains(asked, "demo:slow")}
	if q.Effort != "" && q.Effort != "none" {
		s.thoughts = pieces("A demo provider does not think.")
	}
	if t := toolFor(q, asked); t != nil {
		s.tool = &chat.ToolCall{Name: t.Name, Arguments: string(instance(t.Parameters))}
		return s, nil
	}
	var text []string
	switch {
	case strings.Contains(asked, "demo:refuse"):
		s.refusal = "The demo provider refuses, as it was asked to."
		return s, nil
	case strings.Contains(asked, "demo:empty"):
	case q.Format != nil && q.Format.Kind == "json_schema":
		text = pieces(string(instance(q.Format.Schema)))
	case q.Format != nil:
		text = pieces(`{"demo": true}`)
	default:
		text = words(size, d.words)
	}
	s.fails = strings.Contains(asked, "demo:error")
	limit := q.MaxTokens
	if window > 0 {
		if room := window - int64(size.words); limit == nil || *limit > room {
			limit = &room
		}
	}
	s.words, s.finish = cutWords(text, limit, q.Stop)
	return s, nil
}

// tokens counts what a choice has: a word is a token, and a tool call is one.
func (s *script) tokens() int {
	n := len(s.thoughts) + len(s.words) + len(strings.Fields(s.refusal))
	if s.tool != nil {
		n++
	}
	return n
}

// perform says it, each word of all choices when it is due. What is not streamed takes as long.
func (s *script) perform(ctx context.Context, p pace, w *chat.Writer, choices int) error {
	if err := p.wait(ctx, 0); err != nil {
		return err
	}
	if err := w.Open(); err != nil {
		return err
	}
	due := 0
	each := func(say func() error) error {
		if err := p.wait(ctx, due); err != nil {
			return err
		}
		due++
		for c := range choices {
			w.At(c)
			if err := say(); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range s.thoughts {
		if err := each(func() error { return w.Reasoning(t) }); err != nil {
			return err
		}
	}
	said := s.words
	if s.fails {
		said = said[:len(said)/2]
	}
	for _, t := range said {
		if err := each(func() error { return w.TextWith(t, s.logprobs(t)) }); err != nil {
			return err
		}
	}
	if s.fails {
		return fail(w)
	}
	for c := range choices {
		w.At(c)
		if err := s.close(w, c); err != nil {
			return err
		}
	}
	return nil
}

// close says what comes at once, and finishes a choice.
func (s *script) close(w *chat.Writer, choice int) error {
	if s.refusal != "" {
		if err := w.Refusal(s.refusal); err != nil {
			return err
		}
	}
	if s.tool != nil {
		if err := w.ToolCall(0, "call_demo_"+strconv.Itoa(choice), s.tool.Name, s.tool.Arguments); err != nil {
			return err
		}
	}
	return w.Finish(s.finish)
}

// fail fails as a backend does: with an error status, or within a stream by breaking off.
func fail(w *chat.Writer) error {
	problem := &chat.Problem{Status: http.StatusInternalServerError, Code: "demo_error", Message: errBroke.Error()}
	if !w.Begun() {
		return problem
	}
	if _, err := w.Fail(problem); err != nil {
		return err
	}
	return errBroke
}

func (s *script) logprobs(word string) []chat.TokenLogprob {
	if !s.likely {
		return nil
	}
	return []chat.TokenLogprob{{Token: word, Top: []chat.TokenLogprob{{Token: word}}}}
}

// lastUserText is what the user said last.
func lastUserText(q *chat.Request) string {
	for i := len(q.Messages) - 1; i >= 0; i-- {
		if q.Messages[i].Role == chat.RoleUser {
			return q.Messages[i].Text()
		}
	}
	if len(q.Prompts) > 0 {
		return q.Prompts[len(q.Prompts)-1].Text
	}
	return ""
}

// toolFor is the tool that is to be called: the one that the user names, if the conversation ends with the user, or the
// one that the request insists on.
func toolFor(q *chat.Request, asked string) *chat.Tool {
	if len(q.Tools) == 0 || q.ToolChoice.Mode == "none" || q.Messages[len(q.Messages)-1].Role != chat.RoleUser {
		return nil
	}
	for i, t := range q.Tools {
		if t.Name == q.ToolChoice.Name || q.ToolChoice.Mode != "function" && named(asked, t.Name) {
			return &q.Tools[i]
		}
	}
	if q.ToolChoice.Mode == "required" || len(q.Tools) == 1 && q.ToolChoice.Mode != "function" && mentioned(asked, q.Tools[0].Name) {
		return &q.Tools[0]
	}
	return nil
}

// mentioned tells whether a text that asks for something only one tool can give has a word of the tool's name: the
// weather, where there is get_weather.
func mentioned(text, name string) bool {
	words := strings.Fields(strings.ToLower(text))
	for part := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		if len(part) > 3 && slices.Contains(words, part) {
			return true
		}
	}
	return false
}

// named tells whether a text has the word tool:NAME.
func named(text, name string) bool {
	for _, w := range strings.Fields(text) {
		if strings.TrimRight(w, ".,;!?") == "tool:"+name {
			return true
		}
	}
	return false
}
