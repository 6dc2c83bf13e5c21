package talk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const calls = `[{%s"id":"call_a1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},` +
	`{%s"id":"call_b2","type":"function","function":{"name":"now","arguments":"{}"}}]`

const likely = `{"content":[{"token":%[1]s,"logprob":-0.5,"bytes":null,"top_logprobs":[]}]}`

const usage = `{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`

// openAI answers a chat completion, or an older one.
func (t *turn) openAI(chat bool) {
	var q request
	_ = json.Unmarshal(t.body, &q) // it has been read before
	q.N = max(q.N, 1)
	if q.Stream {
		t.openAIStream(&q, chat)
		return
	}
	if t.script == Break {
		t.w.Header().Set("Content-Length", "1000")
		t.json(http.StatusOK, `{"id":`)
		panic(http.ErrAbortHandler)
	}
	choices := make([]string, q.N)
	for i := range choices {
		choices[i] = q.say(t.script).choice(i, chat)
	}
	t.json(http.StatusOK, head(&q, map[bool]string{true: "chat.completion", false: "text_completion"}[chat])+
		strings.Join(choices, ",")+`],"usage":`+usage+t.extra()+`}`)
}

// extra is what a llama-server adds to an answer.
func (t *turn) extra() string {
	if t.s.dialect == Llama {
		return `,"timings":{"prompt_n":3,"predicted_n":2}`
	}
	return ""
}

func head(q *request, object string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":%q,"created":1700000000,"model":%s,"choices":[`, object, quoted(q.Model))
}

// choice is one choice of an answer in one piece.
func (s said) choice(i int, chat bool) string {
	text := quoted(strings.Join(s.pieces, ""))
	probs := "null"
	if s.likely {
		probs = fmt.Sprintf(likely, quoted(FirstPiece))
	}
	tail := fmt.Sprintf(`,"logprobs":%s,"finish_reason":%q}`, probs, s.finish)
	if !chat {
		return fmt.Sprintf(`{"index":%d,"text":%s`, i, text) + tail
	}
	m := `"role":"assistant","content":` + text
	switch {
	case s.refusal != "":
		m = `"role":"assistant","content":null,"refusal":` + quoted(s.refusal)
	case s.calls:
		m = `"role":"assistant","content":null,"tool_calls":` + fmt.Sprintf(calls, "", "")
	case s.thought != "":
		m += `,"reasoning_content":` + quoted(s.thought)
	}
	return fmt.Sprintf(`{"index":%d,"message":{%s}`, i, m) + tail
}

func (t *turn) openAIStream(q *request, chat bool) {
	t.w.Header().Set("Content-Type", "text/event-stream")
	object := map[bool]string{true: "chat.completion.chunk", false: "text_completion"}[chat]
	frame := func(rest string) { t.send("data: " + head(q, object) + rest + "}\n\n") }
	for i := range q.N {
		s := q.say(t.script)
		delta := func(d string) {
			frame(fmt.Sprintf(`{"index":%d,"delta":{%s},"logprobs":null,"finish_reason":null}]`, i, d))
		}
		if chat {
			first := `""`
			if t.s.dialect == Llama {
				first = "null"
			}
			delta(`"role":"assistant","content":` + first)
			t.beside(&s, delta)
		}
		for _, p := range s.pieces {
			probs := "null"
			if s.likely {
				probs = fmt.Sprintf(likely, quoted(p))
			}
			what := `"delta":{"content":` + quoted(p) + `}`
			if !chat {
				what = `"text":` + quoted(p)
			}
			frame(fmt.Sprintf(`{"index":%d,%s,"logprobs":%s,"finish_reason":null}]`, i, what, probs))
			t.said()
		}
		what := `"delta":{}`
		if !chat {
			what = `"text":""`
		}
		frame(fmt.Sprintf(`{"index":%d,%s,"logprobs":null,"finish_reason":%q}]`, i, what, s.finish))
	}
	if q.StreamOptions.IncludeUsage {
		frame(`],"usage":` + usage + t.extra())
	}
	t.send("data: [DONE]\n\n")
}

// beside sends what is no text.
func (t *turn) beside(s *said, delta func(string)) {
	if s.thought != "" {
		delta(`"reasoning_content":` + quoted(s.thought))
	}
	if s.refusal != "" {
		delta(`"refusal":` + quoted(s.refusal))
	}
	if s.calls {
		delta(`"tool_calls":` + fmt.Sprintf(calls, `"index":0,`, `"index":1,`))
	}
}

func (t *turn) openAIVectors() {
	var q request
	_ = json.Unmarshal(t.body, &q)
	n := 1
	if list, ok := q.Input.([]any); ok {
		n = len(list)
	}
	rows := make([]string, n)
	for i := range rows {
		rows[i] = `{"object":"embedding","index":` + strconv.Itoa(i) + `,"embedding":[0.5,-0.25]}`
	}
	t.json(http.StatusOK, `{"object":"list","data":[`+strings.Join(rows, ",")+`],"model":`+quoted(q.Model)+`,"usage":{"prompt_tokens":2,"total_tokens":2}}`)
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}
