package noded

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/noded/edgelink"
	"iop/proto/nodepb"
)

// An ollama adapter asks by Ollama's own API, with the settings of the edge file and the window of the call's provider.
func TestOllamaIsAskedInItsOwnWords(t *testing.T) {
	asked := make(chan map[string]any, 1)
	base := backendWith(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/api/chat" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		asked <- body
		_, _ = io.WriteString(w, `{"message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":1}`+"\n")
	})
	for setting, want := range map[string]float64{"": 4096, "8192": 8192} {
		n := newNode(t)
		n.configure(1, one("p", "ollama", base, func(a *nodepb.AdapterConfig, p *nodepb.ProviderConfig) {
			a.Settings = map[string]string{"num_ctx": setting, "keep_alive": "1h", "think": "off", "of a newer edge": "x"}
			p.ContextWindowTokens = 4096
		}))
		a, end := n.run("p")
		wantEnd(t, end, edgelink.DispatchedYes, "")
		if !strings.Contains(a.body.String(), `"content":"hi"`) {
			t.Errorf("answered %s", a.body.String())
		}
		body := <-asked
		if options, _ := body["options"].(map[string]any); options["num_ctx"] != want || body["keep_alive"] != "1h" || body["think"] != false {
			t.Errorf("asked %v", body)
		}
	}
	n := newNode(t)
	n.configure(1, one("p", "ollama", base, func(a *nodepb.AdapterConfig, _ *nodepb.ProviderConfig) {
		a.Settings = map[string]string{"num_ctx": "many"}
	}))
	_, end := n.run("p")
	wantEnd(t, end, edgelink.DispatchedNo, codeMisconfigured)
}
