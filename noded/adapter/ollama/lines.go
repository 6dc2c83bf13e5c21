package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"iop/noded/adapter/chat"
)

const (
	lineBytesMax  = 16 << 20 // a line holds a token, or all arguments of a tool call
	errorBytesMax = 64 << 10
)

// errStop ends a call of which nothing more is of use.
var errStop = errors.New("the answer of ollama is not read on")

// lines is the Answer that reads /api/chat and /api/generate: a JSON object per line, the last one done. It renders
// each as soon as it is whole.
type lines struct {
	run    *run
	single bool // only the first tool call is wanted

	status  int
	rest    []byte // of a line that has not ended, or of an error answer
	calls   int    // tool calls so far
	done    bool
	failure *failure // what Ollama said is wrong
}

// line is one of either.
type line struct {
	Error    string   `json:"error"`
	Message  *spoken  `json:"message"`  // of chat
	Response string   `json:"response"` // of generate
	Thinking string   `json:"thinking"`
	Logprobs []likely `json:"logprobs"`

	Done       bool   `json:"done"`
	DoneReason string `json:"done_reason"` // stop, length, load, unload
	Prompt     int64  `json:"prompt_eval_count"`
	Completion int64  `json:"eval_count"`

	Load           int64 `json:"load_duration"` // nanoseconds
	PromptTook     int64 `json:"prompt_eval_duration"`
	CompletionTook int64 `json:"eval_duration"`
}

type spoken struct {
	Content   string     `json:"content"`
	Thinking  string     `json:"thinking"`
	ToolCalls []toolCall `json:"tool_calls"`
}

type likely struct {
	Token   string   `json:"token"`
	Logprob float64  `json:"logprob"`
	Bytes   []int    `json:"bytes"`
	Top     []likely `json:"top_logprobs"`
}

// Head takes the status: see adapter.Answer.
func (l *lines) Head(status int, _ http.Header) error {
	l.status = status
	if status == http.StatusOK {
		l.run.ran = true
	}
	return nil
}

// Data takes what has come of the answer. Lines that came together go on together.
func (l *lines) Data(p []byte) error {
	if l.status != http.StatusOK {
		l.rest = append(l.rest, p[:min(len(p), errorBytesMax-len(l.rest))]...)
		return nil
	}
	l.run.w.Hold()
	if err := l.split(p); err != nil {
		return err
	}
	return l.run.w.Release()
}

// split takes lines apart and renders those that are whole.
func (l *lines) split(p []byte) error {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		whole := p[:end]
		if len(l.rest) > 0 {
			whole = append(l.rest, whole...)
			l.rest = whole[:0]
		}
		if err := l.line(whole); err != nil {
			return err
		}
		p = p[end+1:]
	}
	if len(l.rest)+len(p) > lineBytesMax {
		return l.fail("a line of its answer is too long")
	}
	l.rest = append(l.rest, p...)
	return nil
}

// end takes the orderly end of the answer.
func (l *lines) end() {
	switch {
	case l.status == http.StatusOK:
		if len(l.rest) > 0 {
			_ = l.line(l.rest) // what is wrong is noted
		}
	case l.status != 0:
		l.failure = newFailure(l.status, l.rest)
	}
}

// fail notes what is wrong with the answer.
func (l *lines) fail(text string) error {
	l.failure = &failure{status: http.StatusBadGateway, text: text}
	return errStop
}

// line renders one line.
func (l *lines) line(b []byte) error {
	if len(bytes.TrimSpace(b)) == 0 || l.done || l.failure != nil {
		return nil
	}
	var v line
	if err := json.Unmarshal(b, &v); err != nil {
		return l.fail("a line of its answer is no JSON: " + err.Error())
	}
	if v.Error != "" {
		l.failure = newFailure(http.StatusBadGateway, b)
		return nil
	}
	err := l.render(&v)
	if errors.Is(err, chat.ErrTooLarge) {
		return l.fail(err.Error())
	}
	return err
}

func (l *lines) render(v *line) error {
	w, text, thinking := l.run.w, v.Response, v.Thinking
	if m := v.Message; m != nil {
		text, thinking = m.Content, m.Thinking
	}
	if err := w.Reasoning(thinking); err != nil {
		return err
	}
	if err := w.TextWith(text, tokens(v.Logprobs)); err != nil {
		return err
	}
	if v.Message != nil {
		for _, c := range v.Message.ToolCalls {
			if l.single && l.calls > 0 {
				break
			}
			if err := w.ToolCall(l.calls, c.ID, c.Function.Name, string(c.Function.Arguments)); err != nil {
				return err
			}
			l.calls++
		}
	}
	if !v.Done {
		return nil
	}
	l.done = true
	l.run.count(v)
	reason := chat.FinishStop // also of load and unload, which generate nothing
	if v.DoneReason == "length" {
		reason = chat.FinishLength
	}
	return w.Finish(reason)
}

func tokens(in []likely) []chat.TokenLogprob {
	var out []chat.TokenLogprob
	for _, t := range in {
		out = append(out, chat.TokenLogprob{Token: t.Token, Logprob: t.Logprob, Bytes: t.Bytes, Top: tokens(t.Top)})
	}
	return out
}
