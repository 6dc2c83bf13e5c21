package adapter_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/noded/adapter"
)

// served is a backend that has these pages, and wants the key for all of them.
func served(t *testing.T, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer k":
			w.WriteHeader(http.StatusUnauthorized)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = io.WriteString(w, page)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The shapes are those of llama-server 0.7, Ollama 0.17 and vLLM 0.10 to 0.26; of Lemonade and LM Studio as documented.
func TestLookReadsWhatEachTypeTells(t *testing.T) {
	for kind, c := range map[string]struct {
		base  string
		pages map[string]string
		want  adapter.Glance
	}{
		"vllm": {"/v1", map[string]string{
			"/metrics": `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 2.0
vllm:num_requests_running{engine="1",model_name="a"} 1.0
vllm:num_requests_waiting{engine="0",model_name="a"} 3.0
vllm:num_requests_waiting_by_reason{engine="0",reason="waiting, for capacity"} 3.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
process_open_fds NaN
`,
			"/version":   `{"version":"0.26.0"}`,
			"/v1/models": `{"object":"list","data":[{"id":"org/model","max_model_len":32768}]}`,
		}, adapter.Glance{
			Numbers: map[string]float64{"running": 3, "waiting": 3, "kv_use": 0.5, "context_tokens": 32768},
			Words:   map[string]string{"version": "0.26.0"}, Models: []string{"org/model"},
			Sources: []string{"/metrics", "/version", "/v1/models"},
		}},
		"llamacpp": {"/v1", map[string]string{ // without --metrics
			"/props": `{"total_slots":2,"model_alias":"count.gguf","build_info":"b9000-abc","is_sleeping":false,"default_generation_settings":{"n_ctx":4096}}`,
			"/slots": `[{"id":0,"n_ctx":4096,"is_processing":true},{"id":1,"n_ctx":4096,"is_processing":false}]`,
		}, adapter.Glance{
			Numbers: map[string]float64{"slots": 2, "running": 1, "context_tokens": 4096},
			Words:   map[string]string{"version": "b9000-abc", "sleeping": "false"}, Models: []string{"count.gguf"},
			Sources: []string{"/props", "/slots"},
		}},
		"ollama": {"", map[string]string{
			"/api/ps":      `{"models":[{"name":"gemma3:270m","size_vram":500,"context_length":4096},{"name":"b","size_vram":7,"context_length":8192}]}`,
			"/api/version": `{"version":"0.17.4"}`,
		}, adapter.Glance{
			Numbers: map[string]float64{"memory_bytes": 507, "context_tokens": 8192},
			Words:   map[string]string{"version": "0.17.4"}, Models: []string{"gemma3:270m", "b"},
			Sources: []string{"/api/ps", "/api/version"},
		}},
		"lemonade": {"/api/v1", map[string]string{
			"/api/v1/health": `{"status":"ok","version":"9.1.0","all_models_loaded":[{"model_name":"Qwen3-0.6B","type":"llm","loaded":true}]}`,
		}, adapter.Glance{
			Numbers: map[string]float64{}, Words: map[string]string{"status": "ok", "version": "9.1.0"},
			Models: []string{"Qwen3-0.6B"}, Sources: []string{"/v1/health"},
		}},
		"lmstudio": {"/v1", map[string]string{
			"/api/v0/models": `{"data":[{"id":"a","state":"loaded","loaded_context_length":4096},{"id":"b","state":"not-loaded"}]}`,
		}, adapter.Glance{
			Numbers: map[string]float64{"models_known": 2, "context_tokens": 4096}, Words: map[string]string{},
			Models: []string{"a"}, Sources: []string{"/api/v0/models"},
		}},
		"seulgivibe_openai": {"/v1", map[string]string{"/v1/models": `{"data":[{"id":"x"}]}`}, adapter.Glance{
			Numbers: map[string]float64{}, Words: map[string]string{}, Models: []string{"x"}, Sources: []string{"/v1/models"},
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			g := adapter.Look(t.Context(), adapter.OpenAIConfig{BaseURL: served(t, c.pages) + c.base, APIKey: "k"}, kind)
			if diff := cmp.Diff(&c.want, g); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLookSaysWhyThereIsNothing(t *testing.T) {
	for _, c := range []struct {
		kind, url, key, want string
	}{
		{"demo", "", "", "tells nothing"},
		{"vllm", served(t, nil), "k", "no such page"},
		{"vllm", served(t, nil), "wrong", "status 401"},
		{"vllm", served(t, map[string]string{"/metrics": "nothing 1\n"}), "k", "none of the expected metrics"},
		{"ollama", served(t, map[string]string{"/api/ps": "not JSON"}), "k", "GET /api/ps"},
		{"ollama", served(t, map[string]string{"/api/ps": strings.Repeat(" ", 2<<20)}), "k", "too long"},
		{"llamacpp", "http://127.0.0.1:1", "k", "connect"},
		{"llamacpp", "ftp://x", "k", "http://"},
	} {
		g := adapter.Look(t.Context(), adapter.OpenAIConfig{BaseURL: c.url, APIKey: c.key}, c.kind)
		if !strings.Contains(g.Error, c.want) {
			t.Errorf("%s at %s: %q, want %q", c.kind, c.url, g.Error, c.want)
		}
	}
}
