package adapter_test

import (
	"fmt"
	"strings"
	"testing"

	"iop/noded/adapter"
)

const (
	llamaLoading = `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
	llamaBroken  = `{"error":{"message":"slot crashed","type":"server_error","code":503}}`
	vllmFull     = `{"error":{"message":"Request queue full.","type":"Service Unavailable","param":null,"code":503}}`
	vllmFullFlat = `{"object":"error","message":"Request queue reached max pending tokens limit.","type":"ServiceUnavailable","code":503}`
	vllmDead     = `{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":503}}`
	ollamaFull   = `{"error":{"message":"server busy, please try again.  maximum pending requests exceeded","type":"api_error","param":null,"code":null}}`
)

func TestOnlyDeclaredRefusalsCountAsNotRun(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status int
		body   string
		held   bool
	}{
		{"llamacpp", 503, llamaLoading, true},
		{"llamacpp", 503, llamaBroken, false},
		{"llamacpp", 503, "", false},
		{"llamacpp", 503, "not JSON", false},
		{"llamacpp", 500, llamaLoading, false},
		{"llamacpp", 429, llamaLoading, false},
		{"llamacpp", 503, llamaLoading + strings.Repeat(" ", 64<<10), false}, // too large to be held
		{"llamacpp", 503, llamaLoading + strings.Repeat(" ", 64<<10-len(llamaLoading)), true},
		{"lemonade", 503, llamaLoading, true},
		{"lemonade", 429, "", true},
		{"lemonade", 503, llamaBroken, false},
		{"ollama", 503, ollamaFull, true},
		{"ollama", 503, llamaLoading, false},
		{"vllm", 429, "{}", true},
		{"vllm", 503, llamaLoading, false},
		{"vllm", 503, vllmFull, true},
		{"vllm", 503, vllmFullFlat, true},
		{"vllm", 503, vllmDead, false},
		{"vllm", 500, vllmFull, false},
		{"openai_compat", 503, vllmFull, false},
		{"lmstudio", 429, "{}", true},
		{"lmstudio", 503, "{}", false},
		{"openai_compat", 429, "{}", false},
		{"openai_compat", 503, llamaLoading, false},
		{"mlx", 503, llamaLoading, false},
		{"mlx", 503, `{"error":"[metal::malloc] out of memory"}`, false}, // in the middle of a run
		{"seulgivibe_claude", 429, "{}", false},
		{"seulgivibe_openai", 503, llamaLoading, false},
		{"", 503, llamaLoading, false},
	} {
		t.Run(fmt.Sprintf("%s %d %.20s", c.kind, c.status, c.body), func(t *testing.T) {
			b := newRawBackend(t, always(fmt.Sprintf("HTTP/1.1 %d X\r\nRetry-After: 3\r\nContent-Length: %d\r\n\r\n%s", c.status, len(c.body), c.body)))
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
			for range 2 {
				call := post("{}")
				call.Type = c.kind
				r, end := do(t.Context(), o, call)
				if c.held {
					wantEnd(t, end, adapter.DispatchedNo, adapter.CodeBusy)
					if r.status != 0 || end.Held == nil {
						t.Fatalf("status %d went out, held: %v", r.status, end.Held != nil)
					}
					if h := end.Held; h.Status != c.status || string(h.Body) != c.body || h.Header.Get("Retry-After") != "3" {
						t.Fatalf("held is %d %v %q", h.Status, h.Header, h.Body)
					}
					continue
				}
				wantEnd(t, end, adapter.DispatchedYes, "")
				if end.Held != nil || r.status != c.status || r.body.String() != c.body {
					t.Fatalf("status %d, body %q, held %v", r.status, r.body.String(), end.Held)
				}
			}
			if n := b.accepted.Load(); n != 1 {
				t.Errorf("%d connections for 2 calls", n)
			}
		})
	}
}

func TestARefusalThatBreaksIsNoRefusal(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) {
		c.request()
		c.write("HTTP/1.1 503 X\r\nContent-Length: 500\r\n\r\n" + llamaLoading)
	})
	call := post("{}")
	call.Type = "llamacpp"
	_, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), call)
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
}
