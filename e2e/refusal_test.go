package e2e

import (
	"bytes"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestRefusedRequestsHoldNothing: each kind of bad request has its status, its code and OpenAI's shape, and neither takes
// a slot nor counts in the queue; the backend never hears of it.
func TestRefusedRequestsHoldNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.tokens = map[string]string{"app-a": "key-a", "app-b": "key-b"}
	l.edge = map[string]any{"max_body_bytes": 100_000}
	w := newWorld(t, l)
	good := func(a ask) ask { a.token = "key-a"; return a }
	for name, c := range map[string]struct {
		ask    ask
		status int
		code   string
	}{
		"unknown model":         {good(ask{model: "nobody"}), 404, "model_not_found"},
		"unknown model, stream": {good(ask{model: "nobody", stream: true}), 404, "model_not_found"},
		"no key":                {ask{}, 401, "invalid_api_key"},
		"bad key":               {ask{token: "key-c"}, 401, "invalid_api_key"},
		"bad key, stream":       {ask{token: "key-c", stream: true}, 401, "invalid_api_key"},
		"body too large":        {good(ask{prompt: strings.Repeat("x", 100_000)}), 413, "request_too_large"},
	} {
		a := w.ask(c.ask)
		a.tag = name
		a.wantError(t, c.status, c.code)
	}
	for i := range 10 { // the answer must not be lost to a reset while the body is still on its way
		a := w.ask(good(ask{prompt: strings.Repeat("x", 100_000+i*50_000)}))
		a.wantError(t, 413, "request_too_large")
	}
	for name, body := range map[string]string{
		"malformed JSON": `{"model":"m",`, "no object": `["m"]`, "empty": ` `, "not JSON": `model=m`, "no model": `{"messages":[]}`,
		"model is a number": `{"model":1}`, "two values": `{"model":"m"} {"model":"m"}`,
		"bad UTF-8 model": "{\"model\":\"\xff\xfe\"}", "null": `null`,
	} {
		a := w.ask(good(ask{body: []byte(body)}))
		if a.status != 400 && (a.status != 404 || name != "bad UTF-8 model") {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
		}
		a.tag = name
		a.wantError(t, a.status, a.code())
	}
	a := w.ask(good(ask{path: "/v1/audio/nonsense", tag: "unknown route"}))
	if a.status != 404 {
		t.Errorf("unknown route: %d: %s", a.status, a.body)
	}
	if s := b.Stats(); s.Total != 0 {
		t.Errorf("the backend had %d runs", s.Total)
	}
	w.want(200, ask{token: "key-b"})
	w.awaitIdle()
	w.grants = 1
}

// TestOnlyInferenceTakesSlots: with the only slot taken, models and health answer as ever.
func TestOnlyInferenceTakesSlots(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	l.models["org/with slash%"] = []string{"p1"}
	w := newWorld(t, l)
	f := w.start(ask{tag: "holder"})
	w.awaitLeases(1)
	for _, path := range []string{"/v1/models", "/v1/models/m", "/v1/models/ornith:35b", "/v1/models/org%2Fwith%20slash%25", "/healthz", "/readyz"} {
		if _, err := tryFetch(w.edge.openai, path); err != nil {
			t.Error(err)
		}
	}
	body, err := tryFetch(w.edge.openai, "/v1/models")
	if err != nil || !bytes.Contains(body, []byte(`"ornith-fast"`)) || !bytes.Contains(body, []byte(`"owned_by":"iop"`)) {
		t.Errorf("models: %s, %v", body, err)
	}
	if bytes.Contains(body, []byte("served/")) {
		t.Errorf("the catalog shows inner names: %s", body)
	}
	if _, err := tryFetch(w.edge.openai, "/v1/models/nobody"); err == nil || !strings.Contains(err.Error(), "model_not_found") {
		t.Errorf("an unknown model: %v", err)
	}
	if n := len(w.leases()); n != 1 {
		t.Errorf("%d leases", n)
	}
	b.LetAll()
	a := f.wait(t)
	a.want(t, 200)
	w.awaitIdle()
	w.grants = 1
}
