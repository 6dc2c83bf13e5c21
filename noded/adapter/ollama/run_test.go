package ollama_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"iop/noded/adapter"
	"iop/noded/adapter/ollama"
)

func TestAnAnswerIsRenderedWholeAndStreamed(t *testing.T) {
	f := newFake(t, replay(ndjson(thought, said1, said2, doneStop)))
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	w := whole(t, ask(t, a, chats("")))
	if c := w.Choices[0]; w.Object != "chat.completion" || w.Model != "tiny" || c.Message.Content != " é1 2" || c.Message.ReasoningContent != "Hm." || c.FinishReason != "stop" ||
		w.Usage.Prompt != 3 || w.Usage.Completion != 2 || w.Usage.Total != 5 {
		t.Errorf("whole: %+v", w)
	}
	if took := w.Usage.Took; took["load"] != 281.808 || took["prompt"] != 2.993 || took["completion"] != 10.184 {
		t.Errorf("durations: %v", took)
	}
	got, ended := frames(t, ask(t, a, chatting(`,"stream_options":{"include_usage":true}`)).body.String())
	if n := len(got); n != 6 || !ended || got[0].Choices[0].Delta.Role != "assistant" || got[1].Choices[0].Delta.ReasoningContent != "Hm." ||
		got[2].Choices[0].Delta.Content != " é1" || got[3].Choices[0].Delta.Content != " 2" || got[4].Choices[0].FinishReason != "stop" || len(got[5].Choices) != 0 || got[5].Usage.Total != 5 {
		t.Errorf("streamed: ended %v, %+v", ended, got)
	}
}

func TestReasonsToolsAndLogprobsAreMapped(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		call  *adapter.Call
		check func(answered) bool
	}{
		"length": {[]string{said1, doneLong}, chats(""), func(a answered) bool { return a.Choices[0].FinishReason == "length" && a.Usage.Completion == 62 }},
		"load": {[]string{loaded}, chats(""), func(a answered) bool {
			return a.Choices[0].FinishReason == "stop" && a.Choices[0].Message.Content == ""
		}},
		"tools": {[]string{called, doneStop}, chats(""), func(a answered) bool {
			c := a.Choices[0]
			return c.FinishReason == "tool_calls" && len(c.Message.ToolCalls) == 2 && c.Message.ToolCalls[0].ID == "call_a1" && c.Message.ToolCalls[0].Type == "function" &&
				c.Message.ToolCalls[0].Function.Name == "weather" && c.Message.ToolCalls[0].Function.Arguments == `{"city":"Paris"}` && c.Message.ToolCalls[1].Function.Arguments == `{}`
		}},
		"one tool": {[]string{called, doneStop}, chats(`,"parallel_tool_calls":false`), func(a answered) bool { return len(a.Choices[0].Message.ToolCalls) == 1 }},
		"logprobs": {[]string{likely1, doneStop}, chats(`,"logprobs":true,"top_logprobs":1`), func(a answered) bool {
			l := a.Choices[0].Logprobs
			return l != nil && len(l.Content) == 1 && l.Content[0].Token == " 1" && l.Content[0].Logprob < 0 && len(l.Content[0].Bytes) == 2 && len(l.Content[0].Top) == 1
		}},
		"completion": {[]string{wrote, wroteDone}, post("/v1/completions", `{"model":"tiny","prompt":"x"}`), func(a answered) bool {
			return a.Object == "text_completion" && a.Choices[0].Text == " 1" && a.Choices[0].FinishReason == "length"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, replay(ndjson(c.lines...)))
			if a := whole(t, ask(t, newAdapter(t, ollama.Config{BaseURL: f.url()}), c.call)); !c.check(a) {
				t.Errorf("answered %+v", a)
			}
		})
	}
}

func TestChoicesAreMadeOneAfterAnotherInOneSlot(t *testing.T) {
	f := newFake(t, func(n int, _ asked, _ net.Conn) (string, bool) {
		return ndjson(strings.ReplaceAll(said2, " 2", fmt.Sprintf("<%d>", n)), doneStop), false
	})
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	w := whole(t, ask(t, a, chats(`,"n":3,"seed":5`)))
	if len(w.Choices) != 3 || w.Choices[2].Message.Content != "<2>" || w.Choices[2].Index != 2 || w.Usage.Prompt != 3 || w.Usage.Completion != 6 {
		t.Errorf("answered %+v", w)
	}
	for i, q := range f.got() {
		if seed := q.body["options"].(map[string]any)["seed"]; seed != float64(5+i) {
			t.Errorf("choice %d has the seed %v", i, seed)
		}
	}
	f.mu.Lock()
	if n := len(f.conns); n != 1 {
		t.Errorf("%d connections", n)
	}
	f.mu.Unlock()
	w = whole(t, ask(t, a, post("/v1/completions", `{"model":"tiny","prompt":["a","b"],"n":2}`)))
	if got := f.got(); len(w.Choices) != 4 || w.Usage.Prompt != 6 || got[len(got)-1].body["prompt"] != "b" || got[len(got)-3].body["prompt"] != "a" {
		t.Errorf("answered %+v", w)
	}
}

// A choice that fails after another has run: the request was run, whatever the later refusal says.
func TestALaterChoiceThatIsNotRunIsNoReasonToGoElsewhere(t *testing.T) {
	f := newFake(t, func(n int, _ asked, _ net.Conn) (string, bool) {
		if n > 0 {
			return jsonAnswer(503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`), false
		}
		return ndjson(said1, doneStop), false
	})
	_, end := do(t.Context(), newAdapter(t, ollama.Config{BaseURL: f.url()}), chats(`,"n":2`))
	if end.Dispatched != adapter.DispatchedYes || end.Code != adapter.CodeBackendBroke || end.Held != nil {
		t.Errorf("the run ended as %+v", end)
	}
}

func TestWhatOllamaDidNotRunMayRunElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		status int
		code   string
		says   string
	}{
		"busy":       {jsonAnswer(503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`), 503, "provider_busy", "try again"},
		"not pulled": {jsonAnswer(404, `{"error":"model 'tiny' not found"}`), 404, "model_not_found", "ollama pull tiny"},
		"not loaded": {jsonAnswer(500, `{"error":"model requires more system memory (30.1 GiB) than is available (7.0 GiB)"}`), 503, "model_not_loaded", "num_ctx"},
	} {
		for _, call := range []*adapter.Call{chats(""), chatting(""), post("/v1/embeddings", `{"model":"tiny","input":"x"}`)} {
			f := newFake(t, replay(c.raw))
			r, end := do(t.Context(), newAdapter(t, ollama.Config{BaseURL: f.url()}), call)
			if end.Dispatched != adapter.DispatchedNo || end.Code != adapter.CodeBusy || end.Held == nil || end.Held.Status != c.status || r.status != 0 {
				t.Errorf("%s: ended as %+v", name, end)
				continue
			}
			r.body.Write(end.Held.Body)
			if e := whole(t, r).Error; e == nil || e.Code != c.code || !strings.Contains(e.Message, c.says) || end.Held.Header.Get("Content-Length") != fmt.Sprint(len(end.Held.Body)) {
				t.Errorf("%s: held %s", name, end.Held.Body)
			}
		}
	}
	_, end := do(t.Context(), newAdapter(t, ollama.Config{BaseURL: "http://127.0.0.1:1"}), chats(""))
	if end.Dispatched != adapter.DispatchedNo || end.Code != adapter.CodeConnectFailed {
		t.Errorf("a refused connection ends as %+v", end)
	}
}

func TestErrorsAreOpenAIs(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		status int
		code   string
		param  string
	}{
		"too long":       {tooLong, 400, "context_length_exceeded", "messages"},
		"no thinking":    {jsonAnswer(400, `{"error":"\"tiny\" does not support thinking"}`), 400, "unsupported_value", "reasoning_effort"},
		"no tools":       {jsonAnswer(400, `{"error":"registry.ollama.ai/library/tiny:latest does not support tools"}`), 400, "unsupported_value", "tools"},
		"no chat":        {jsonAnswer(400, `{"error":"\"tiny\" does not support chat"}`), 400, "unsupported_value", "model"},
		"other":          {jsonAnswer(400, `{"error":"invalid format"}`), 400, "invalid_request", ""},
		"a key":          {jsonAnswer(401, `{"error":"unauthorized"}`), 502, "provider_error", ""},
		"runner":         {jsonAnswer(500, `{"error":"llama runner process has terminated: exit status 2"}`), 502, "provider_error", ""},
		"a 503 of else":  {jsonAnswer(503, `<html>no upstream</html>`), 502, "provider_error", ""},
		"OpenAI's shape": {jsonAnswer(418, `{"error":{"message":"teapot"}}`), 400, "invalid_request", ""},
		"a first line":   {ndjson(brokeOff), 502, "provider_error", ""},
		"not JSON":       {ndjson("<html>"), 502, "provider_error", ""},
	} {
		for _, call := range []*adapter.Call{chats(`,"reasoning_effort":"none"`), chatting(`,"reasoning_effort":"none"`)} {
			f := newFake(t, replay(c.raw))
			r := ask(t, newAdapter(t, ollama.Config{BaseURL: f.url()}), call)
			if e := whole(t, r).Error; r.status != c.status || e == nil || e.Code != c.code || e.Param != c.param || e.Message == "" {
				t.Errorf("%s: %d %s", name, r.status, r.body.String())
			}
		}
	}
}

func TestAnErrorWithinAnAnswerBreaksIt(t *testing.T) {
	f := newFake(t, replay(ndjson(said1, brokeOff)))
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	r, end := do(t.Context(), a, chatting(""))
	got, ended := frames(t, r.body.String())
	if end.Code != adapter.CodeBackendBroke || end.Dispatched != adapter.DispatchedYes || ended || got[len(got)-1].Error == nil || !strings.Contains(got[len(got)-1].Error.Message, "CUDA") {
		t.Errorf("streamed: %+v, %s", end, r.body.String())
	}
	r = ask(t, a, chats(""))
	if e := whole(t, r).Error; r.status != 502 || e == nil || e.Code != "provider_error" {
		t.Errorf("whole: %d %s", r.status, r.body.String())
	}
}

func TestHowAModelThinksIsAskedForAsItCan(t *testing.T) {
	levels := jsonAnswer(400, `{"error":"think value \"low\" is not supported for this model"}`)
	f := newFake(t, func(_ int, a asked, _ net.Conn) (string, bool) {
		if _, isLevel := a.body["think"].(string); isLevel {
			return levels, false
		}
		return ndjson(thought, doneStop), false
	})
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	ask(t, a, chats(`,"reasoning_effort":"low"`))
	if got := f.got(); len(got) != 2 || got[1].body["think"] != true {
		t.Errorf("asked %+v", got)
	}
	none := newFake(t, func(_ int, a asked, _ net.Conn) (string, bool) {
		if a.body["think"] != nil {
			return jsonAnswer(400, `{"error":"\"tiny\" does not support thinking"}`), false
		}
		return ndjson(said1, doneStop), false
	})
	a = newAdapter(t, ollama.Config{BaseURL: none.url(), Think: "high"})
	if r := ask(t, a, chats("")); r.status != 200 {
		t.Errorf("what only the configuration asks for is refused: %s", r.body.String())
	}
	if r := ask(t, a, chats(`,"reasoning_effort":"high"`)); r.status != 400 || whole(t, r).Error.Param != "reasoning_effort" {
		t.Errorf("answered %s", r.body.String())
	}
}

func TestEmbeddingsAreRendered(t *testing.T) {
	f := newFake(t, replay(jsonAnswer(200, `{"model":"tiny","embeddings":[[0.5,-0.25],[0,1]],"total_duration":1,"load_duration":1,"prompt_eval_count":4}`)))
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	w := whole(t, ask(t, a, post("/v1/embeddings", `{"model":"tiny","input":["a","b"]}`)))
	if len(w.Data) != 2 || w.Data[1].Index != 1 || w.Data[0].Embedding[1] != -0.25 || w.Usage.Prompt != 4 || w.Usage.Total != 4 {
		t.Errorf("answered %+v", w)
	}
	if r := ask(t, a, post("/v1/embeddings", `{"model":"tiny","input":"a"}`)); r.status != 502 {
		t.Errorf("two vectors for one input: %s", r.body.String())
	}
}

// Wherever an answer is cut, the run says that it broke, and nobody takes what came for all there is.
func TestAnAnswerThatIsCutIsNeverWhole(t *testing.T) {
	raw := ndjson(said1, called, doneStop)
	bodyAt := strings.Index(raw, "\r\n\r\n") + 4
	for _, call := range []func(string) *adapter.Call{chats, chatting} {
		var at atomic.Int64
		f := newFake(t, func(int, asked, net.Conn) (string, bool) { return raw[:at.Load()], true })
		a := newAdapter(t, ollama.Config{BaseURL: f.url()})
		for cut := range len(raw) {
			at.Store(int64(cut))
			r, end := do(t.Context(), a, call(""))
			if end.Code != adapter.CodeBackendBroke || strings.Contains(r.body.String(), "[DONE]") {
				t.Fatalf("cut at %d of %d: %+v, %s", cut, len(raw), end, r.body.String())
			}
			if want := adapter.DispatchedYes; cut > 0 && end.Dispatched != want || cut == 0 && end.Dispatched == adapter.DispatchedNo {
				t.Fatalf("cut at %d: %+v", cut, end)
			}
			if r.status == 200 && cut < bodyAt {
				t.Fatalf("cut at %d: the head of nothing", cut)
			}
		}
	}
}

// Bytes may come in any pieces.
func TestAnAnswerInAnyPiecesIsTheSame(t *testing.T) {
	raw := ndjson(thought, said1, called, doneStop)
	f := newFake(t, func(n int, _ asked, c net.Conn) (string, bool) {
		size := n + 1
		for i := 0; i < len(raw); i += size {
			if _, err := io.WriteString(c, raw[i:min(i+size, len(raw))]); err != nil {
				return "", true
			}
		}
		return "", false
	})
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	for range 9 {
		got, ended := frames(t, ask(t, a, chatting("")).body.String())
		if len(got) != 6 || !ended || got[2].Choices[0].Delta.Content != " é1" || got[5].Choices[0].FinishReason != "tool_calls" {
			t.Fatalf("ended %v, %+v", ended, got)
		}
	}
}

// An orderly end of the body without a line that is done is no end.
func TestAnAnswerThatWasNeverDoneBroke(t *testing.T) {
	f := newFake(t, replay(ndjson(said1)))
	for _, call := range []*adapter.Call{chats(""), chatting("")} {
		r, end := do(t.Context(), newAdapter(t, ollama.Config{BaseURL: f.url()}), call)
		if end.Code != adapter.CodeBackendBroke || strings.Contains(r.body.String(), "[DONE]") {
			t.Errorf("%+v, %s", end, r.body.String())
		}
	}
}

func TestACancelInMidStreamFreesOllama(t *testing.T) {
	gone := make(chan struct{})
	half, _, _ := strings.Cut(ndjson(said1, said2, doneStop), said2)
	f := newFake(t, func(_ int, _ asked, c net.Conn) (string, bool) {
		_, _ = io.WriteString(c, half)
		_, _ = io.Copy(io.Discard, c) // until the client has gone
		close(gone)
		return "", true
	})
	ctx, cancel := context.WithCancel(t.Context())
	r := recorder{onData: func() error { cancel(); return nil }}
	end := newAdapter(t, ollama.Config{BaseURL: f.url()}).Do(ctx, chatting(""), &r)
	<-gone
	if end.Code != adapter.CodeCanceled || end.Dispatched != adapter.DispatchedYes {
		t.Errorf("ended as %+v", end)
	}
}

func TestTheDeadlineAndALostClientEndARun(t *testing.T) {
	half, _, _ := strings.Cut(ndjson(said1, said2, doneStop), said2)
	f := newFake(t, func(_ int, _ asked, c net.Conn) (string, bool) {
		_, _ = io.WriteString(c, half)
		_, _ = io.Copy(io.Discard, c)
		return "", true
	})
	a := newAdapter(t, ollama.Config{BaseURL: f.url()})
	c := chatting("")
	c.Deadline = time.Now().Add(30 * time.Millisecond)
	if _, end := do(t.Context(), a, c); end.Code != adapter.CodeBackendTimeout || end.Dispatched != adapter.DispatchedYes {
		t.Errorf("the deadline: %+v", end)
	}
	r := recorder{onData: func() error { return io.ErrClosedPipe }}
	if end := a.Do(t.Context(), chatting(""), &r); end.Code != adapter.CodeAnswerFailed || end.Dispatched != adapter.DispatchedYes {
		t.Errorf("the client: %+v", end)
	}
}
