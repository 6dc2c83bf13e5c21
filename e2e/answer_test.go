package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// answer is what came back.
type answer struct {
	tag    string
	status int // 0 = no answer at all
	header http.Header
	body   []byte
	err    error // of sending, or of reading the body
	clean  bool  // the body ended in a way that proves that it is whole
}

// failure is the error of an answer in OpenAI's shape.
type failure struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// code is the stable code of an error answer.
func (a *answer) code() string {
	var e struct {
		Error *failure `json:"error"`
	}
	if json.Unmarshal(a.body, &e) != nil || e.Error == nil || e.Error.Code == nil {
		return ""
	}
	return *e.Error.Code
}

// text is the content of the answer, from frames or from a plain body.
func (a *answer) text() string {
	var out strings.Builder
	bodies := [][]byte{a.body}
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		bodies = frames(a.body)
	}
	for _, b := range bodies {
		var c struct {
			Choices []struct {
				Delta, Message struct{ Content string }
				Text           string
			}
			// Of a response, or of the event that ends its stream.
			Output   []outputItem
			Response struct{ Output []outputItem }
		}
		if json.Unmarshal(b, &c) == nil && len(c.Choices) > 0 {
			out.WriteString(c.Choices[0].Delta.Content + c.Choices[0].Message.Content + c.Choices[0].Text)
		}
		for _, o := range slices.Concat(c.Output, c.Response.Output) {
			for _, part := range o.Content {
				out.WriteString(part.Text)
			}
		}
	}
	return out.String()
}

// outputItem is an item of a response.
type outputItem struct{ Content []struct{ Text string } }

// frames are the data of SSE frames.
func frames(body []byte) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			out = append(out, bytes.TrimPrefix(data, []byte(" ")))
		}
	}
	return out
}

func (a *answer) want(t testing.TB, status int) {
	t.Helper()
	if a.status != status || status < 300 && !a.clean {
		t.Fatalf("%s: status %d, clean %v, %v, want %d: %.600s", a.tag, a.status, a.clean, a.err, status, a.body)
	}
}

// wantError checks an error answer's status, code and shape.
func (a *answer) wantError(t testing.TB, status int, code string) {
	t.Helper()
	if a.status != status || a.code() != code {
		t.Errorf("%s: status %d, code %q, want %d, %q: %v %.600s", a.tag, a.status, a.code(), status, code, a.err, a.body)
		return
	}
	var e struct{ Error failure }
	if err := json.Unmarshal(a.body, &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("%s: not OpenAI's shape of an error: %s", a.tag, a.body)
	}
	if !a.clean {
		t.Errorf("%s: the error has no clean end", a.tag)
	}
}

// wantRetry checks Retry-After (1 to 60 seconds) and retry-after-ms beside it.
func (a *answer) wantRetry(t testing.TB) {
	t.Helper()
	s, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || s < 1 || s > 60 {
		t.Errorf("%s: Retry-After %q, want 1 to 60", a.tag, a.header.Get("Retry-After"))
	}
	if ms, err := strconv.Atoi(a.header.Get("retry-after-ms")); err != nil || ms < 1 || ms > 60_000 {
		t.Errorf("%s: retry-after-ms %q", a.tag, a.header.Get("retry-after-ms"))
	}
}

// modelOf is the model that an answer names, from its first frame or its body.
func modelOf(a *answer) string {
	body := a.body
	if f := frames(a.body); len(f) > 0 {
		body = f[0]
	}
	var m struct{ Model string }
	if json.Unmarshal(body, &m) != nil {
		return ""
	}
	return m.Model
}
