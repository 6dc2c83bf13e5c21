package openai_test

import (
	"context"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

// teams are three principals: one that may use one model, an operator, and one of which nothing is said.
func teams(_ *openai.Options, v *openai.View) {
	v.Tokens = []openai.Token{{Ref: "a1", SHA256: sha("a"), Principal: "A"}, {Ref: "o1", SHA256: sha("o"), Principal: "O"}, {Ref: "b1", SHA256: sha("b"), Principal: "B"}}
	v.Principals = []openai.Principal{{Ref: "A", Models: []string{"same", "provider:cli"}}, {Ref: "O", Operator: true}}
	v.Models[0].Candidates = []openai.Candidate{{Provider: "p2", Served: "s2"}, {Provider: "p1", Served: "s1"}}
	v.Providers = append(v.Providers, openai.Provider{ID: "cli", Unlimited: true, Models: []string{"x"}}, openai.Provider{ID: "other", Unlimited: true})
}

// TestAPrincipalSeesItsModels: a model that it may not use is as one that does not exist, in the list, by its name, and in a
// request; nothing of it is admitted.
func TestAPrincipalSeesItsModels(t *testing.T) {
	e := newEdge(t, teams)
	list := e.do("GET", "/v1/models", "", "X-Api-Key", "a").body
	if !strings.Contains(list, `"same"`) || strings.Contains(list, "ornith") {
		t.Error(list)
	}
	if all := e.do("GET", "/v1/models", "", "X-Api-Key", "b").body; strings.Count(all, `"id"`) != 3 {
		t.Error(all)
	}
	hidden, missing := e.do("GET", "/v1/models/ornith:35b", "", "X-Api-Key", "a"), e.do("GET", "/v1/models/ornith:36b", "", "X-Api-Key", "a")
	if hidden.StatusCode != 404 || strings.ReplaceAll(hidden.body, "35b", "36b") != missing.body {
		t.Error(hidden.body, missing.body)
	}
	wantCode(t, e.chat(hello, "X-Api-Key", "a"), 404, "model_not_found")
	wantCode(t, e.chat(`{"model":"provider:other","messages":[]}`, "X-Api-Key", "a"), 404, "model_not_found")
	if len(e.seen) != 0 {
		t.Errorf("%+v was admitted", e.seen)
	}
	for _, name := range []string{"same", "provider:cli", "provider:cli/x"} {
		if r := e.chat(`{"model":"`+name+`","messages":[]}`, "X-Api-Key", "a"); r.StatusCode != 200 {
			t.Error(name, r.body)
		}
		if q := e.lastRequest(); q.Principal != "A" || q.Token != "a1" || !q.Metered {
			t.Errorf("%+v", q)
		}
	}
}

// TestOperatorsSeeMore: the field iop is theirs alone.
func TestOperatorsSeeMore(t *testing.T) {
	e := newEdge(t, teams)
	want := `"iop":{"candidates":[{"provider":"p1","served":"s1"},{"provider":"p2","served":"s2"}]}}`
	for _, path := range []string{"/v1/models", "/v1/models/ornith:35b"} {
		if r := e.do("GET", path, "", "X-Api-Key", "o"); !strings.Contains(r.body, want) {
			t.Error(path, r.body)
		}
		if r := e.do("GET", path, "", "X-Api-Key", "b"); strings.Contains(r.body, "candidates") {
			t.Error(path, r.body)
		}
	}
}

// TestAPrincipalAtItsLimit is told so, and when to come again.
func TestAPrincipalAtItsLimit(t *testing.T) {
	e := newEdge(t, teams)
	e.run = func(context.Context, openai.Request, openai.Caller) error { return coded("principal_limit") }
	r := e.chat(hello, "X-Api-Key", "b")
	wantCode(t, r, 429, "principal_limit")
	if r.Header.Get("Retry-After") != "7" {
		t.Error(r.Header)
	}
}

// TestAKeyOfAProviderStaysAtTheDoor: a provider that is no OpenAI server never gets the caller's key; nor does anybody if
// nothing is to be passed on.
func TestAKeyOfAProviderStaysAtTheDoor(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		e := newEdge(t, func(_ *openai.Options, v *openai.View) {
			v.ProviderAuth = openai.ProviderAuth{Enabled: enabled, FromHeader: "X-Own", TargetHeader: "X-Target", Scheme: "Bearer", Required: true}
			v.Providers = []openai.Provider{{ID: "p1", Adapter: "ollama"}} // as ollama, cli and demo are
		})
		e.chat(hello, "X-Own", "own-secret", "Authorization", "Bearer gateway-secret")
		for name, values := range e.last().Header {
			if strings.Contains(strings.Join(values, " "), "secret") {
				t.Errorf("enabled %v: %s: %v went out", enabled, name, values)
			}
		}
	}
}

// TestUnauthorizedShapes: each API is told in its own shape that a key is wrong.
func TestUnauthorizedShapes(t *testing.T) {
	e := newEdge(t, teams)
	for _, header := range [][]string{{}, {"Authorization", "Bearer wrong"}, {"X-Api-Key", "wrong"}, {"Authorization", "Basic YTph"}} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings"} {
			r := e.do("POST", path, hello, header...)
			wantCode(t, r, 401, "invalid_api_key")
			if r.Header.Get("Www-Authenticate") == "" {
				t.Error(r.Header)
			}
		}
		r := e.do("POST", "/v1/messages", `{"model":"same","max_tokens":1,"messages":[]}`, header...)
		if r.StatusCode != 401 || !strings.Contains(r.body, `"type":"error"`) || !strings.Contains(r.body, `"authentication_error"`) {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		if r := e.do("GET", "/v1/models", "", header...); r.StatusCode != 401 {
			t.Error(r.StatusCode)
		}
	}
}

// A model in a form is seen as one in JSON is.
func TestAPrincipalSeesItsModelsInForms(t *testing.T) {
	e := newEdge(t, teams, func(_ *openai.Options, v *openai.View) {
		v.Providers = append(v.Providers, openai.Provider{ID: "whisper", Can: fsm.NeedAudio})
	})
	form := func(model string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n--x--\r\n"
	}
	kind := []string{"X-Api-Key", "a", "Content-Type", "multipart/form-data; boundary=x"}
	wantCode(t, e.do("POST", "/v1/audio/transcriptions", form("ornith:35b"), kind...), 404, "model_not_found")
	if len(e.seen) != 0 {
		t.Errorf("%+v was admitted", e.seen)
	}
	if r := e.do("POST", "/v1/audio/transcriptions", form("same"), kind...); r.StatusCode != 200 {
		t.Error(r.StatusCode, r.body)
	}
}
