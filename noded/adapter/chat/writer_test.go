package chat_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iop/noded/adapter/chat"
)

const (
	chats       = "/v1/chat/completions"
	completions = "/v1/completions"
	embeddings  = "/v1/embeddings"
)

func options() chat.Options {
	return chat.Options{ID: "id-1", Created: time.Unix(1700000000, 0)}
}

func TestAnswersAreInOpenAIsShapes(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	const ask = `"messages":[{"role":"user","content":"hi"}]`
	say := func(w *chat.Writer) error {
		return errors.Join(w.Text("Hello, "), w.Text("<wörld> & \"all\"\n"), w.Finish(chat.FinishStop))
	}
	two := func(w *chat.Writer) error {
		w.At(1)
		err := w.Text("b")
		w.At(0)
		err = errors.Join(err, w.Text("a"), w.Finish(chat.FinishLength))
		w.At(1)
		return errors.Join(err, w.Finish(chat.FinishStop))
	}
	tools := func(w *chat.Writer) error {
		return errors.Join(w.Reasoning("Which? "), w.Reasoning("Both."),
			w.ToolCall(0, "call_a", "now", ""), w.ToolCall(0, "", "", `{"zone":`), w.ToolCall(0, "", "", `"UTC"}`),
			w.ToolCall(1, "call_b", "here", "{}"), w.Finish(chat.FinishStop))
	}
	likely := func(w *chat.Writer) error {
		return errors.Join(w.TextWith("é", []chat.TokenLogprob{{Token: "é", Logprob: -0.5, Top: []chat.TokenLogprob{{Token: "e", Logprob: -1}}}}),
			w.TextWith("x", []chat.TokenLogprob{{Token: "x", Logprob: -0.25}}), w.Finish(chat.FinishStop))
	}
	for name, c := range map[string]struct {
		path, body string
		write      func(*chat.Writer) error
	}{
		"chat":              {chats, `{"model":"m",` + ask + `}`, say},
		"chat-stream":       {chats, `{"model":"m","stream":true,` + ask + `}`, say},
		"chat-stream-usage": {chats, `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + ask + `}`, say},
		"chat-n":            {chats, `{"model":"m","n":2,` + ask + `}`, two},
		"chat-n-stream":     {chats, `{"model":"m","n":2,"stream":true,` + ask + `}`, two},
		"tools":             {chats, `{"model":"m",` + ask + `}`, tools},
		"tools-stream":      {chats, `{"model":"m","stream":true,` + ask + `}`, tools},
		"logprobs":          {chats, `{"model":"m","logprobs":true,` + ask + `}`, likely},
		"logprobs-stream":   {chats, `{"model":"m","logprobs":true,"stream":true,` + ask + `}`, likely},
		"refusal": {chats, `{"model":"m",` + ask + `}`, func(w *chat.Writer) error {
			return errors.Join(w.Refusal("I won't."), w.Finish(chat.FinishStop))
		}},
		"refusal-stream": {chats, `{"model":"m","stream":true,` + ask + `}`, func(w *chat.Writer) error {
			return errors.Join(w.Refusal("I won't."), w.Finish(chat.FinishFilter))
		}},
		"empty":             {chats, `{"model":"m",` + ask + `}`, func(w *chat.Writer) error { return w.Finish(chat.FinishStop) }},
		"empty-stream":      {chats, `{"model":"m","stream":true,` + ask + `}`, func(w *chat.Writer) error { return w.Finish(chat.FinishStop) }},
		"completion":        {completions, `{"model":"m","prompt":"hi"}`, say},
		"completion-stream": {completions, `{"model":"m","prompt":"hi","stream":true,"stream_options":{"include_usage":true}}`, say},
		"completion-probs":  {completions, `{"model":"m","prompt":"hi","logprobs":1}`, likely},
		"embeddings": {embeddings, `{"model":"m","input":["a","b"]}`, func(w *chat.Writer) error {
			return errors.Join(w.Embedding([]float32{0.5, -1}), w.Embedding([]float32{0.1, 1e-9}))
		}},
		"embeddings-base64": {embeddings, `{"model":"m","input":"a","encoding_format":"base64"}`, func(w *chat.Writer) error {
			return w.Embedding([]float32{0.5, -1})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorded
			w := chat.NewWriter(read(t, c.path, c.body), &r, options())
			w.Usage(chat.Usage{Prompt: 3, Completion: 5, Cached: 1, Reasoning: 2})
			if err := errors.Join(c.write(w), w.End()); err != nil {
				t.Fatal(err)
			}
			golden(t, name, r.text(), update)
			checkJSON(t, &r)
		})
	}
}

// golden compares with testdata/name.txt.
func golden(t *testing.T, name, got string, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run with -update", err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// checkJSON checks that each frame, or the whole, is JSON, and that a stream ends with [DONE].
func checkJSON(t *testing.T, r *recorded) {
	t.Helper()
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		if !json.Valid(r.body.Bytes()) {
			t.Errorf("no JSON: %s", r.body.String())
		}
		return
	}
	frames := strings.Split(r.body.String(), "\n\n")
	n := len(frames)
	if n < 2 || frames[n-1] != "" || frames[n-2] != "data: [DONE]" {
		t.Fatalf("the stream ends with %q", frames[n-1])
	}
	for _, f := range frames[:n-2] {
		if data, ok := strings.CutPrefix(f, "data: "); !ok || !json.Valid([]byte(data)) {
			t.Errorf("the frame is %q", f)
		}
	}
}

// A character that is split over events is sent whole, wherever it is split, and what is no UTF-8 at all is replaced.
func TestSplitCharactersAreSentWhole(t *testing.T) {
	const text = "aé€😀z"
	for _, body := range []string{`{"model":"m","stream":true,"prompt":"x"}`, `{"model":"m","prompt":"x"}`} {
		for size := 1; size <= 4; size++ {
			var r recorded
			w := chat.NewWriter(read(t, completions, body), &r, options())
			for i := 0; i < len(text); i += size {
				if err := w.Text(text[i:min(i+size, len(text))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(w.Text("\xff!\xf0\x9f"), w.Finish(chat.FinishStop), w.End()); err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, &r); got != text+"\ufffd!\ufffd" {
				t.Errorf("in pieces of %d: %q", size, got)
			}
		}
	}
}

// textOf joins the text of a completion, streamed or not.
func textOf(t *testing.T, r *recorded) (text string) {
	t.Helper()
	for _, f := range strings.Split(r.body.String(), "\n\n") {
		data := strings.TrimPrefix(f, "data: ")
		if data == "" || data == "[DONE]" {
			continue
		}
		var a struct{ Choices []struct{ Text string } }
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if strings.Contains(a.Choices[0].Text, "\ufffd") && !strings.HasSuffix(a.Choices[0].Text, "\ufffd") && r.header.Get("Content-Length") == "" &&
			!strings.Contains(a.Choices[0].Text, "!") {
			t.Errorf("a piece is broken: %q", a.Choices[0].Text)
		}
		text += a.Choices[0].Text
	}
	return text
}

func TestEverythingThatIsQuotedIsJSON(t *testing.T) {
	var all strings.Builder
	for c := range 0x180 {
		all.WriteRune(rune(c))
	}
	all.WriteString("\u2028\u2029\ufeff😀")
	var r recorded
	w := chat.NewWriter(read(t, completions, `{"model":"m","prompt":"x","stream":true}`), &r, chat.Options{})
	if err := errors.Join(w.Text(all.String()), w.Finish(chat.FinishStop), w.End()); err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, &r); got != all.String() {
		t.Errorf("got %q", got)
	}
}

func TestAProblemBeforeTheHeadIsAnAnswerAndLaterAnEvent(t *testing.T) {
	problem := &chat.Problem{Status: 404, Code: "model_not_found", Message: "there is none", Cure: "pull it"}
	const want = `{"error":{"message":"there is none; pull it","type":"invalid_request_error","param":null,"code":"model_not_found"}}`
	for _, stream := range []string{"false", "true"} {
		q := read(t, chats, `{"model":"m","stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`)
		var r recorded
		w := chat.NewWriter(q, &r, options())
		if broke, err := w.Fail(problem); broke || err != nil || r.status != 404 || r.body.String() != want {
			t.Errorf("stream %s: broke %v, %v, %s", stream, broke, err, r.text())
		}
		r = recorded{}
		w = chat.NewWriter(q, &r, options())
		err := w.Text("a")
		broke, failed := w.Fail(problem)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		switch {
		case stream == "false" && (broke || r.status != 404):
			t.Errorf("broke %v, %s", broke, r.text())
		case stream == "true" && (!broke || r.status != 200 || !strings.HasSuffix(r.body.String(), "data: "+want+"\n\n") || strings.Contains(r.body.String(), "[DONE]")):
			t.Errorf("broke %v, %s", broke, r.text())
		}
	}
}

func TestAnAnswerThatIsNotWholeIsNotEnded(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		q := read(t, chats, `{"model":"m","n":2,"stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`)
		var r recorded
		w := chat.NewWriter(q, &r, options())
		err := errors.Join(w.Text("a"), w.Finish(chat.FinishStop))
		w.At(1)
		if err := errors.Join(err, w.Text("b")); err != nil {
			t.Fatal(err)
		}
		if err := w.End(); !errors.Is(err, chat.ErrUnfinished) || strings.Contains(r.body.String(), "[DONE]") {
			t.Errorf("stream %s: %v, %s", stream, err, r.text())
		}
	}
}

func TestAnAnswerIsBoundedAndItsReaderMayLeave(t *testing.T) {
	var r recorded
	w := chat.NewWriter(read(t, completions, `{"model":"m","prompt":"x"}`), &r, chat.Options{WholeMax: 3})
	if err := w.Text("abc"); err != nil {
		t.Fatal(err)
	}
	if err := w.Text("d"); !errors.Is(err, chat.ErrTooLarge) || w.Err() != nil {
		t.Errorf("%v, %v", err, w.Err())
	}
	r = recorded{room: 1}
	w = chat.NewWriter(read(t, completions, `{"model":"m","prompt":"x","stream":true}`), &r, chat.Options{})
	if err := w.Text("a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Text("b"); !errors.Is(err, errGone) || !errors.Is(w.Finish(chat.FinishStop), errGone) || !errors.Is(w.End(), errGone) || !errors.Is(w.Err(), errGone) {
		t.Errorf("%v", err)
	}
	if _, err := w.Fail(&chat.Problem{}); !errors.Is(err, errGone) || r.pieces != 1 {
		t.Errorf("%v, %d pieces", err, r.pieces)
	}
}

func TestWhatIsHeldGoesOutTogether(t *testing.T) {
	var r recorded
	w := chat.NewWriter(read(t, completions, `{"model":"m","prompt":"x","stream":true}`), &r, chat.Options{})
	w.Hold()
	if err := errors.Join(w.Text("a"), w.Text("b")); err != nil || r.pieces != 0 {
		t.Fatalf("%v, %d pieces", err, r.pieces)
	}
	if err := w.Release(); err != nil || r.pieces != 1 {
		t.Fatalf("%v, %d pieces", err, r.pieces)
	}
	if err := errors.Join(w.Text("c"), w.Release()); err != nil || r.pieces != 2 || textOf(t, &r) != "abc" {
		t.Errorf("%v, %d pieces, %s", err, r.pieces, r.text())
	}
	w.Hold()
	for range 1000 {
		if err := w.Text(" and so on, for it may not grow without a bound"); err != nil {
			t.Fatal(err)
		}
	}
	if r.pieces < 3 {
		t.Error("what is held has no bound")
	}
}

func BenchmarkStreamedToken(b *testing.B) {
	q, _ := chat.Read(chats, []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	w := chat.NewWriter(q, nothing{}, chat.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Text(" token"); err != nil {
			b.Fatal(err)
		}
	}
}
