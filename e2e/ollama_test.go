package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"iop/e2e/backend"
)

// ollamaFake speaks Ollama's own chat, as far as a word of it.
type ollamaFake struct {
	*httptest.Server
	asked  atomic.Int64
	window atomic.Int64 // the num_ctx of the last request
	says   func(w http.ResponseWriter, r *http.Request)
}

func newOllamaFake(t *testing.T, says func(w http.ResponseWriter, r *http.Request)) *ollamaFake {
	t.Helper()
	f := &ollamaFake{says: says}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Options struct {
				NumCtx int64 `json:"num_ctx"`
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/api/chat" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		f.asked.Add(1)
		f.window.Store(body.Options.NumCtx)
		f.says(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

const (
	ollamaWord = `{"model":"x","message":{"role":"assistant","content":"word"},"done":false}` + "\n"
	ollamaDone = `{"model":"x","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":1}` + "\n"
)

// shape is what an answer has, without what it says: its members' names, in order of depth.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, below := range v {
			if name != "durations_ms" { // beside OpenAI's
				out[name] = shape(below)
			}
		}
		return out
	case []any:
		if len(v) > 0 {
			return []any{shape(v[0])}
		}
	}
	return nil
}

// One model whose providers are an OpenAI-compatible server, an Ollama and the demo: whichever it is, the answer has what
// an answer must have, under the name that the client knows.
func TestAMixedGroupAnswersAlike(t *testing.T) {
	ollama := newOllamaFake(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, ollamaWord+ollamaDone) })
	other := newBackend(t, backend.Options{})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: other.URL() + "/v1"}, {id: "p2", url: ollama.URL, kind: "ollama", window: 4096}, {id: "p3"}},
		models:    map[string][]string{"m": {"p1", "p2", "p3"}, "o": {"p2"}, "d": {"p3"}},
	})
	for _, stream := range []bool{false, true} {
		shapes := map[string]string{}
		for _, model := range []string{"o", "d"} {
			a := w.want(200, ask{model: model, stream: stream})
			if a.text() == "" || modelOf(&a) != model {
				t.Errorf("%s: %s", model, a.body)
			}
			first := a.body
			if stream {
				first = frames(a.body)[0]
			}
			var v any
			if err := json.Unmarshal(first, &v); err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(shape(v))
			if err != nil {
				t.Fatal(err)
			}
			shapes[model] = string(b)
		}
		if shapes["o"] != shapes["d"] {
			t.Errorf("stream %v: ollama's answer is\n%s, the demo's\n%s", stream, shapes["o"], shapes["d"])
		}
	}
	if n := ollama.window.Load(); n != 4096 {
		t.Errorf("ollama is asked for a context of %d", n)
	}
	seen := map[string]bool{}
	for range 9 { // in turn
		a := w.want(200, ask{})
		seen[a.header.Get("X-Iop-Provider")] = true
	}
	if len(seen) != 3 {
		t.Errorf("served by %v", seen)
	}
	w.awaitIdle()
}

// What Ollama did not run goes on to the next provider, and if there is none its reason reaches the client.
func TestAModelThatOllamaLacksIsServedElsewhere(t *testing.T) {
	ollama := newOllamaFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"model 'served/p1' not found"}`)
	})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: ollama.URL, kind: "ollama", priority: -1}, {id: "p2"}},
		models:    map[string][]string{"m": {"p1", "p2"}, "only": {"p1"}},
	})
	a := w.want(200, ask{})
	if p := a.header.Get("X-Iop-Provider"); p != "p2" || ollama.asked.Load() != 1 {
		t.Errorf("served by %s after %d questions to ollama", p, ollama.asked.Load())
	}
	a = w.ask(ask{model: "only"})
	a.wantError(t, http.StatusNotFound, "model_not_found")
	if !strings.Contains(string(a.body), "ollama pull") {
		t.Errorf("no cure in %s", a.body)
	}
	w.awaitIdle()
}

// An Ollama that breaks off in the middle is seen as broken, and its slot comes back.
func TestAnOllamaThatBreaksOffIsNoCleanEnd(t *testing.T) {
	ollama := newOllamaFake(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ollamaWord)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"error":"llama runner process has terminated"}`+"\n")
	})
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: ollama.URL, kind: "ollama"}}, models: map[string][]string{"m": {"p1"}},
	})
	a := w.ask(ask{stream: true})
	if a.status != 200 || a.clean || !strings.Contains(string(a.body), "runner process has terminated") || strings.Contains(string(a.body), "[DONE]") {
		t.Errorf("status %d, clean %v: %s", a.status, a.clean, a.body)
	}
	a = w.ask(ask{})
	a.wantError(t, http.StatusBadGateway, "provider_error")
	w.awaitIdle()
}
