package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

// ledger is what a Runner was told of the runs.
type ledger struct {
	mu   sync.Mutex
	told []fsm.Usage
}

func (l *ledger) only(t *testing.T) fsm.Usage {
	t.Helper()
	for range 1000 {
		l.mu.Lock()
		told := l.told
		l.mu.Unlock()
		if len(told) == 1 {
			return told[0]
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("nothing, or more than one run, was told of")
	return fsm.Usage{}
}

// reporting is an edge whose Runner asks, as admission does, what the run used.
func reporting(t *testing.T, change ...func(*openai.Options, *openai.View)) (*edge, *ledger) {
	e, l := newEdge(t, change...), &ledger{}
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		e.dispatch(ctx, q, c)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, c.(interface{ Used() fsm.Usage }).Used())
		return nil
	}
	return e, l
}

const (
	wordChunk  = `data: {"id":"c","model":"served/ornith:35b","choices":[{"index":0,"delta":{"content":"hi"}}],"usage":null}` + "\n\n"
	usageChunk = `data: {"id":"c","model":"served/ornith:35b","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7,"prompt_tokens_details":{"audio_tokens":1,"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3},"total_tokens":19}}` + "\n\n"
	lastChunk  = "data: [DONE]\n\n"
)

// TestUsageOfAStreamIsAskedForAndHidden: the client that did not ask for it sees no chunk of it; the count is the same.
func TestUsageOfAStreamIsAskedForAndHidden(t *testing.T) {
	want := fsm.Usage{Told: true, Prompt: 12, Completion: 7, Cached: 8, Reasoning: 3}
	whole := wordChunk + usageChunk + lastChunk
	for _, c := range []struct {
		options, sent string // "" = absent
		shown         bool
	}{
		{"", `{"include_usage":true}`, false},
		{`null`, `{"include_usage":true}`, false},
		{`{}`, `{"include_usage":true}`, false},
		{`{"include_usage":false,"x":1}`, `{"include_usage":true,"x":1}`, false},
		{`{"x":1,"include_usage":null}`, `{"include_usage":true,"x":1}`, false},
		{`{"include_usage": true}`, `{"include_usage": true}`, true},
		{`7`, `7`, true},
	} {
		for _, cut := range []int{1, 7, 64, len(whole)} {
			e, l := reporting(t)
			var pieces []string
			for rest := whole; rest != ""; {
				n := min(cut, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			e.backend = answerAs("text/event-stream", 200, pieces...)
			body := `{"model":"ornith:35b","stream":true`
			if c.options != "" {
				body += `,"stream_options":` + c.options
			}
			r := e.chat(body + `,"messages":[]}`)
			shown := strings.ReplaceAll(whole, "served/", "")
			if !c.shown {
				shown = strings.ReplaceAll(wordChunk+lastChunk, "served/", "")
			}
			if r.body != shown || r.err != nil {
				t.Errorf("%q in pieces of %d: the client got %q, %v", c.options, cut, r.body, r.err)
			}
			var sent map[string]json.RawMessage
			if err := json.Unmarshal(e.last().Body, &sent); err != nil || string(sent["stream_options"]) != c.sent {
				t.Errorf("%q: the backend got %s, %v", c.options, e.last().Body, err)
			}
			if told := l.only(t); told != want {
				t.Errorf("%q in pieces of %d: told %+v", c.options, cut, told)
			}
		}
	}
}

// TestUsageIsWhatTheBackendSaidLast: totals that grow are not added up, a zero is a number, an abort has what was seen, and
// chunks are not counted as tokens.
func TestUsageIsWhatTheBackendSaidLast(t *testing.T) {
	chunk := func(in, out int) string {
		return fmt.Sprintf(`data: {"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\n", in, out)
	}
	for name, c := range map[string]struct {
		answer func(context.Context, *openai.Exchange, openai.Answer) openai.End
		want   fsm.Usage
	}{
		"growing":  {answerAs("text/event-stream", 200, chunk(5, 1), chunk(5, 2), chunk(5, 3), lastChunk), fsm.Usage{Told: true, Prompt: 5, Completion: 3}},
		"zero":     {answerAs("text/event-stream", 200, chunk(0, 0), lastChunk), fsm.Usage{Told: true}},
		"none":     {answerAs("text/event-stream", 200, wordChunk, wordChunk, lastChunk), fsm.Usage{}},
		"json":     {answerJSON(200, `{"choices":[{"usage":{"prompt_tokens":99}}],"usage":{"prompt_tokens":4,"prompt_tokens_details":null,"completion_tokens":0}}`), fsm.Usage{Told: true, Prompt: 4}},
		"nested":   {answerJSON(200, `{"usage":{"completion_tokens_details":{"a":{"reasoning_tokens":50},"reasoning_tokens":2},"x":{"cached_tokens":9},"completion_tokens":6,"prompt_tokens":1}}`), fsm.Usage{Told: true, Prompt: 1, Completion: 6, Reasoning: 2}},
		"an error": {answerJSON(400, `{"error":{"message":"no"}}`), fsm.Usage{}},
		"broken": {func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
			_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
			_ = a.Data([]byte(chunk(5, 2)))
			return openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}
		}, fsm.Usage{Told: true, Prompt: 5, Completion: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			e, l := reporting(t)
			e.backend = c.answer
			e.chat(`{"model":"ornith:35b","stream":true,"messages":[]}`)
			if told := l.only(t); told != c.want {
				t.Errorf("told %+v, want %+v", told, c.want)
			}
		})
	}
}

// TestNothingIsAskedForWithoutCounting: the body goes as it came.
func TestNothingIsAskedForWithoutCounting(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) { v.CountTokens = false })
	e.backend = answerAs("text/event-stream", 200, usageChunk)
	if r := e.chat(`{"model":"ornith:35b","stream":true,"messages":[]}`); !strings.Contains(r.body, "usage") || strings.Contains(string(e.last().Body), "stream_options") {
		t.Error(r.body, string(e.last().Body))
	}
	if e.lastRequest().Metered {
		t.Error("metered")
	}
}

// TestTheEstimateAndTheClassAreShown: what admission was told of the request.
func TestTheEstimateAndTheClassAreShown(t *testing.T) {
	e := newEdge(t)
	for n, class := range map[int]string{10: "normal", 8000: "long"} {
		r := e.chat(`{"model":"ornith:35b","messages":[{"role":"user","content":"` + strings.Repeat("word ", n) + `"}]}`)
		q := e.lastRequest()
		if r.Header.Get("X-Iop-Class") != class || q.Class.String() != class || r.Header.Get("X-Iop-Estimated-Tokens") != fmt.Sprint(q.InputTokens) {
			t.Errorf("%d words: %v, %+v", n, r.Header, q)
		}
	}
}
