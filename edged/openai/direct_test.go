package openai_test

import (
	"context"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

// newDirectEdge has a provider without a bound beside p1, which has one.
func newDirectEdge(t *testing.T) *edge {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Providers = append(v.Providers,
			openai.Provider{ID: "codex", Adapter: "cli", Unlimited: true, Models: []string{"gpt-5", "org/gpt:6"}},
			openai.Provider{ID: "bare", Adapter: "cli", Unlimited: true})
	})
	e.metrics.SetNames([]string{"ornith:35b", "provider:codex"}, []string{"p1", "codex"})
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		c.Dispatch(ctx, fsm.Grant{Lease: 1, Model: q.Model, Provider: q.Provider, Served: q.Served, Node: "n1"}, 0)
		return nil
	}
	return e
}

func TestDirectNames(t *testing.T) {
	e := newDirectEdge(t)
	for _, c := range []struct{ name, provider, served string }{
		{"provider:codex", "codex", "gpt-5"},
		{"provider:codex/gpt-5", "codex", "gpt-5"},
		{"provider:codex/org/gpt:6", "codex", "org/gpt:6"},
		{"provider:bare", "bare", "bare"},
		{`provider\u003acodex`, "codex", "gpt-5"},
	} {
		name := strings.ReplaceAll(c.name, `\u003a`, ":")
		e.backend = answerJSON(200, `{"id":"1","model":"`+c.served+`"}`)
		r := e.chat(`{"model":"` + c.name + `","messages":[]}`)
		if want := `{"id":"1","model":"` + name + `"}`; r.StatusCode != 200 || r.body != want {
			t.Errorf("%s: %d %s, want %s", c.name, r.StatusCode, r.body, want)
		}
		if q := e.lastRequest(); q.Provider != fsm.ProviderID(c.provider) || q.Served != c.served || string(q.Model) != "provider:"+c.provider {
			t.Errorf("%s: admitted as %+v", c.name, q)
		}
		x := e.last()
		if got := string(x.Body); got != `{"model":"`+c.served+`","messages":[]}` || x.Adapter != "cli" {
			t.Errorf("%s: the backend got %s by %s", c.name, got, x.Adapter)
		}
		if got := r.Header.Get("X-Iop-Provider"); got != c.provider {
			t.Errorf("%s: X-Iop-Provider %s", c.name, got)
		}
	}
	if all := e.scraped(); !strings.Contains(all, `model="provider:codex"`) || strings.Contains(all, "gpt-5") {
		t.Error("the metrics do not name the provider, or name more")
	}
}

func TestDirectNamesThatAreNone(t *testing.T) {
	e := newDirectEdge(t)
	for name, want := range map[string]string{
		"provider:p1":           "has a bounded capacity",
		"provider:p1/served":    "has a bounded capacity",
		"provider:nobody":       "There is no provider",
		"provider:":             "There is no provider",
		"provider:codex/":       "serves no model",
		"provider:codex/gpt-9":  "serves no model",
		"provider:bare/x":       "serves no model",
		"Provider:codex":        "does not exist",
		"provider:codex/GPT-5":  "serves no model",
		"provider:codex\u0000x": "There is no provider",
	} {
		r := e.chat(`{"model":"` + strings.ReplaceAll(name, "\x00", `\u0000`) + `"}`)
		wantCode(t, r, 404, "model_not_found")
		if !strings.Contains(r.body, want) {
			t.Errorf("%s: %s, want %q", name, r.body, want)
		}
	}
	e.mu.Lock()
	if len(e.seen) > 0 {
		t.Errorf("%d requests reached admission", len(e.seen))
	}
	e.mu.Unlock()
	if r := e.do("GET", "/v1/models", ""); strings.Contains(r.body, "codex") {
		t.Errorf("the list shows %s", r.body)
	}
	wantCode(t, e.do("GET", "/v1/models/provider:codex", ""), 404, "model_not_found")
}

func TestDirectRefusalsNameTheProvider(t *testing.T) {
	e := newDirectEdge(t)
	for code, want := range map[string]struct {
		status int
		code   string
	}{
		"unavailable": {503, "provider_unavailable"}, "draining": {503, "provider_unavailable"},
		"model_not_found": {404, "model_not_found"}, "context_too_long": {400, "context_length_exceeded"},
		"unsupported": {404, "unsupported_by_model"},
	} {
		e.run = func(context.Context, openai.Request, openai.Caller) error { return coded(code) }
		r := e.chat(`{"model":"provider:codex"}`)
		wantCode(t, r, want.status, want.code)
		if !strings.Contains(r.body, `provider \"codex\"`) {
			t.Errorf("%s: %s", code, r.body)
		}
	}
}
