package ollama_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"iop/noded/adapter"
	"iop/noded/adapter/ollama"
)

// TestARealOllama runs against a server where there is one: OLLAMA_URL=http://127.0.0.1:11434 OLLAMA_MODEL=name.
func TestARealOllama(t *testing.T) {
	url, model := os.Getenv("OLLAMA_URL"), os.Getenv("OLLAMA_MODEL")
	if url == "" || model == "" {
		t.Skip("OLLAMA_URL and OLLAMA_MODEL name no server")
	}
	a := newAdapter(t, ollama.Config{BaseURL: url, NumCtx: 512, KeepAlive: "1m"})
	hi := func(members string) *adapter.Call {
		return post("/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]`+members+`}`)
	}
	w := whole(t, ask(t, a, hi(`,"max_tokens":5,"logprobs":true`)))
	if c := w.Choices[0]; c.FinishReason != "length" || c.Message.Content == "" || w.Usage.Completion != 5 || w.Usage.Prompt == 0 || len(c.Logprobs.Content) == 0 {
		t.Errorf("whole: %+v", w)
	}
	got, ended := frames(t, ask(t, a, hi(`,"max_tokens":5,"n":2,"stream":true,"stream_options":{"include_usage":true}`)).body.String())
	if last := got[len(got)-1]; !ended || last.Usage == nil || last.Usage.Completion != 10 {
		t.Errorf("streamed: %+v", got)
	}
	long := strings.Repeat("hello world ", 2000)
	r := ask(t, a, post("/v1/chat/completions", `{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"`+long+`"}]}`))
	if e := whole(t, r).Error; r.status != 400 || e == nil || e.Code != "context_length_exceeded" {
		t.Errorf("too long: %d %s", r.status, r.body.String())
	}
	e := whole(t, ask(t, a, post("/v1/embeddings", `{"model":"`+model+`","input":["a","b"]}`)))
	if len(e.Data) != 2 || len(e.Data[0].Embedding) == 0 {
		t.Errorf("embeddings: %+v", e)
	}
	if r := ask(t, a, post("/v1/completions", `{"model":"`+model+`","prompt":"hi","max_tokens":2}`)); whole(t, r).Choices[0].Text == "" {
		t.Errorf("completion: %s", r.body.String())
	}
	_, end := do(t.Context(), a, post("/v1/chat/completions", `{"model":"no-such-model","messages":[{"role":"user","content":"hi"}]}`))
	if end.Dispatched != adapter.DispatchedNo || end.Held == nil || end.Held.Status != 404 {
		t.Errorf("no such model: %+v", end)
	}
	if err := a.Probe(t.Context(), "/api/tags?model="+model); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := recorder{onData: func() error { cancel(); return nil }}
	if end := a.Do(ctx, hi(`,"stream":true`), &stop); end.Code != adapter.CodeCanceled {
		t.Errorf("canceled: %+v", end)
	}
	if r := ask(t, a, post("/v1/messages", `{"model":"`+model+`","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`)); r.status != 200 {
		t.Errorf("messages: %d %s", r.status, r.body.String())
	}
}
