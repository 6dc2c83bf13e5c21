package openai_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

// Fault: a backend that told in its stream what went wrong, and then ended as broken, had the edge tell it once more, in
// less true words: clients saw two errors.
func TestAnErrorThatTheBackendToldIsNotToldAgain(t *testing.T) {
	const chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"error\\\":{}}\"}}],\"error\":null}\n\n"
	for name, c := range map[string]struct {
		sent  string
		again bool
	}{
		"told":                      {chunk + "data: {\"error\":{\"message\":\"own\",\"usage\":{}}}\n\n", false},
		"told, its event unended":   {chunk + "data: {\"error\":{\"message\":\"own\"}}\n", false},
		"told in pieces":            {chunk + "data: {\"id\":1,\ndata: \"error\":{\"message\":\"own\"}}\n\n", false},
		"cut off while it was told": {chunk + "data: {\"error\":{\"message\":\"ow", true},
		"only talked about":         {chunk, true},
		"told, and went on":         {"data: {\"error\":{\"message\":\"own\"}}\n\n" + chunk, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t)
			e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
				_ = a.Head(200, sse.Clone())
				for _, b := range []byte(c.sent) {
					_ = a.Data([]byte{b})
				}
				return openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}
			}
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.addr+"/v1/chat/completions", strings.NewReader(streamed))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			b, err := io.ReadAll(res.Body)
			if err == nil {
				t.Error("the broken stream ended in order")
			}
			if got := strings.Contains(string(b), "provider_error"); got != c.again || !strings.HasPrefix(string(b), strings.TrimRight(c.sent, "\n")) {
				t.Errorf("told again: %v, want %v: %q", got, c.again, b)
			}
			if why := e.free(); why != fsm.ReasonBackendError {
				t.Error(why)
			}
		})
	}
}
