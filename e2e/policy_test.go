package e2e

import (
	"net/http"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestGenerationPolicy: defaults are added where the client says nothing, caps hold what it says, all else stays.
func TestGenerationPolicy(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.cluster = map[string]any{"models": []any{map[string]any{
		"id": "m", "providers": map[string]string{"p1": served("p1")},
		"generation": map[string]any{"max_tokens": 100, "temperature": 0.5},
	}}}
	w := newWorld(t, l)
	for name, c := range map[string]struct{ body, want string }{
		"absent":  {`{"model":"m","user":"absent"}`, `"max_tokens":100`},
		"default": {`{"model":"m","user":"default"}`, `"temperature":0.5`},
		"over":    {`{"model":"m","user":"over","max_tokens":500}`, `"max_tokens":100`},
		"under":   {`{"model":"m","user":"under","max_tokens":7}`, `"max_tokens":7`},
		"said":    {`{"model":"m","user":"said","temperature":1.25}`, `"temperature":1.25`},
		"unknown": {`{"model":"m","user":"unknown","x_new":{"max_tokens":500}}`, `"x_new":{"max_tokens":500}`},
	} {
		w.want(200, ask{body: []byte(c.body)})
		r, _ := b.Run(name)
		if !strings.Contains(string(r.Body), c.want) {
			t.Errorf("%s: the backend got %s, want %s in it", name, r.Body, c.want)
		}
		if n := strings.Count(string(r.Body), `"temperature"`); n != 1 {
			t.Errorf("%s: %d temperatures in %s", name, n, r.Body)
		}
	}
	w.awaitIdle()
}

// TestProviderAuth: a caller's own key for the backend is passed on under its target header and nowhere else; without it
// the request is refused before it takes a slot.
func TestProviderAuth(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.cluster = map[string]any{"openai": map[string]any{
		"principal_tokens": []any{map[string]any{"token_ref": "app", "token_hash_sha256": sha("gateway-key"), "principal_ref": "team"}},
		"provider_auth":    map[string]any{"enabled": true},
	}}
	w := newWorld(t, l)
	a := w.ask(ask{token: "gateway-key", tag: "without"})
	if a.status != 401 {
		t.Errorf("without a provider key: %d: %s", a.status, a.body)
	}
	w.want(200, ask{token: "gateway-key", tag: "with", header: http.Header{"X-Iop-Provider-Authorization": {"raw-provider-key"}}})
	r, _ := b.Run("with")
	if got := r.Header.Get("Authorization"); got != "Bearer raw-provider-key" {
		t.Errorf("the backend got Authorization %q", got)
	}
	if r.Header.Get("X-Iop-Provider-Authorization") != "" {
		t.Error("the backend got the gateway's own header")
	}
	w.awaitIdle()
	for _, p := range w.all {
		if p.says("raw-provider-key") || p.says("gateway-key") {
			t.Errorf("%s logged a key", p.name)
		}
	}
	w.grants = 1
}
