package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"iop/e2e/backend/talk"
	"iop/edged/adminapi"
)

// TestDevJoinsLocalBackends: servers that speak as Ollama, llama.cpp, vLLM and LM Studio do are found out for what they are, and their
// models answer through dev.
func TestDevJoinsLocalBackends(t *testing.T) {
	t.Parallel()
	args := []string{"dev", "--port", "0", "--admin-port", "0", "--no-detect"}
	servers := []struct {
		model, owner, kind string
		dialect            talk.Dialect
	}{
		{"llama3.2:1b", "library", "ollama", talk.OpenAI},
		{"qwen.gguf", "llamacpp", "llamacpp", talk.Llama},
		{"awq", "vllm", "vllm", talk.VLLM},
		{"lm", "organization_owner", "openai_compat", talk.OpenAI},
	}
	for _, x := range servers {
		server := talk.New(x.dialect)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","owned_by":%q}]}`, x.model, x.owner)
				return
			}
			server.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		args = append(args, "--backend", s.URL+"/v1/")
	}
	w := newEmptyWorld(t, layout{})
	p := w.track(spawn(t, "iopctl dev", nil, program(t, "iopctl"), append(args, "--data-dir", w.path("dev"))...))
	await(t, "dev is ready", func() bool { return p.says("Ctrl-C stops it") })
	said := regexp.MustCompile(`curl -N http://([^/]+)/(?s:.*?)status --edge (\S+)`).FindStringSubmatch(p.out.String())
	openai, admin := said[1], said[2]
	kinds := map[string]string{}
	var list adminapi.ProviderList
	if err := json.Unmarshal(fetch(t, admin, "/providers"), &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Providers {
		kinds[x.ID] = x.Type
	}
	for i, x := range servers {
		if got := kinds[fmt.Sprintf("backend-%d", i+1)]; got != x.kind {
			t.Errorf("%s is taken for %q, want %q", x.model, got, x.kind)
		}
		for _, stream := range []bool{false, true} {
			if a := call(t.Context(), openai, ask{model: x.model, stream: stream}); a.status != 200 || !a.clean || a.text() == "" {
				t.Errorf("%s, stream %v: %d %s", x.model, stream, a.status, a.text())
			}
		}
	}
	terminate(t, p)
	if code := p.code(t); code != 0 {
		t.Errorf("dev ended with code %d", code)
	}
}

// One that was named and does not answer is no start.
func TestDevWantsTheBackendsThatAreNamed(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, layout{})
	out := w.iopctl(1, "dev", "--port", "0", "--admin-port", "0", "--no-detect", "--data-dir", w.path("dev"), "--backend", "http://127.0.0.1:1/v1")
	wantWords(t, "dev", out, "no backend with models answers at http://127.0.0.1:1/v1", "cure: start it")
	wantWords(t, "dev", w.iopctl(2, "dev", "--backend", "gpu:8000"), "is not a URL")
}
