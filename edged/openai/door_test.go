package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
)

func TestRoutes(t *testing.T) {
	var notReady error
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.Ready = func() error { return notReady } })
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/v1/chat/completions", 405, "method_not_allowed", "POST"},
		{"DELETE", "/v1/models", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "/v1/models/same", 405, "method_not_allowed", "GET, HEAD"},
		{"POST", "/v1/unheard/of", 404, "unknown_url", ""},
		{"GET", "/v1/", 404, "unknown_url", ""},
		{"GET", "/", 404, "unknown_url", ""},
		{"POST", "/v1/chat/completions/", 404, "unknown_url", ""},
		{"GET", "/v1/models/nobody", 404, "model_not_found", ""},
		{"GET", "/v1/models/%2", 400, "", ""},
	} {
		if c.path == "/v1/models/%2" {
			_, in := e.dial("GET /v1/models/%2 HTTP/1.1\r\nHost: x\r\n\r\n")
			if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 400 {
				t.Error(res, err)
			}
			continue
		}
		r := e.do(c.method, c.path, "")
		wantCode(t, r, c.status, c.code)
		if r.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow %q", c.method, c.path, r.Header.Get("Allow"))
		}
	}
	for _, path := range []string{"/v1/models/org/model:7b", "/v1/models/org%2Fmodel%3A7b"} {
		r := e.do("GET", path, "")
		if want := `{"id":"org/model:7b","object":"model","created":1700000000,"owned_by":"iop"}` + "\n"; r.StatusCode != 200 || r.body != want {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	r := e.do("GET", "/v1/models", "")
	var list struct {
		Object string
		Data   []struct{ ID, Object string }
	}
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || list.Object != "list" || len(list.Data) != 3 || list.Data[0].ID != "org/model:7b" {
		t.Errorf("%s %v", r.body, err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := e.do("GET", path, ""); r.StatusCode != 200 {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	notReady = errors.New("no configuration yet")
	if r := e.do("GET", "/readyz", ""); r.StatusCode != 503 || !strings.Contains(r.body, "no configuration yet") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if n := len(e.seen); n != 0 {
		t.Errorf("%d of these took part in admission", n)
	}
}

func TestRefusals(t *testing.T) {
	e := newEdge(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
		after  string
		retry  string
	}{
		{coded("queue_full"), 429, "queue_full", "7", ""},
		{coded("queue_timeout"), 503, "queue_timeout", "7", ""},
		{coded("canceled_by_operator"), 503, "canceled_by_operator", "", "false"},
		{coded("unavailable"), 503, "provider_unavailable", "7", ""},
		{coded("draining"), 503, "provider_unavailable", "7", ""},
		{coded("model_not_found"), 404, "model_not_found", "", "false"},
		{coded("context_too_long"), 400, "context_length_exceeded", "", "false"},
		{coded("unsupported"), 404, "unsupported_by_model", "", "false"},
		{coded("in_progress_elsewhere"), 409, "in_progress_elsewhere", "6", ""},
		{coded("overloaded"), 503, "overloaded", "7", ""},
		{coded("stopping"), 503, "stopping", "7", ""},
		{coded("session_ended"), 503, "no_leader", "2", ""},
		{coded("no_leader"), 503, "no_leader", "2", ""},
		{fmt.Errorf("propose: %w", coded("failed")), 503, "storage_failed", "7", ""},
		{errors.New("what is this"), 500, "internal_error", "", ""},
	} {
		e.run = func(context.Context, openai.Request, openai.Caller) error { return c.err }
		r := e.chat(hello)
		wantCode(t, r, c.status, c.code)
		if r.Header.Get("Retry-After") != c.after || (r.Header.Get("Retry-After-Ms") != "") != (c.after != "") ||
			r.Header.Get("X-Should-Retry") != c.retry || r.Header.Get("X-Iop-Dispatched") != "false" {
			t.Errorf("%v: %v", c.err, r.Header)
		}
	}
}

func TestMalformedRequestsNeverReachAdmission(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.MaxBodyBytes = 1000 })
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		header     []string
	}{
		{"empty", "", 400, "invalid_json", nil},
		{"no json", `{"model":`, 400, "invalid_json", nil},
		{"list", `[1]`, 400, "invalid_request", nil},
		{"no model", `{"messages":[]}`, 400, "invalid_request", nil},
		{"model is a number", `{"model":5}`, 400, "invalid_request", nil},
		{"the last model counts", `{"model":"same","model":null}`, 400, "invalid_request", nil},
		{"unknown model", `{"model":"gpt"}`, 404, "model_not_found", nil},
		{"gzip", `{"model":"same"}`, 415, "unsupported_content_encoding", []string{"Content-Encoding", "gzip"}},
		{"too large", `{"model":"same","x":"` + strings.Repeat("x", 1000) + `"}`, 413, "request_too_large", nil},
	} {
		r := e.chat(c.body, c.header...)
		if wantCode(t, r, c.status, c.code); t.Failed() {
			t.Fatal(c.name)
		}
		if r.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %v", c.name, r.Header)
		}
	}
	// Too large without saying so beforehand.
	q, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+e.addr+"/v1/chat/completions", io.MultiReader(strings.NewReader(strings.Repeat(" ", 3000))))
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 413 {
		t.Error(res.StatusCode)
	}
	if len(e.seen) != 0 {
		t.Error("admitted")
	}
}

func TestKeys(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		for i := range 3 {
			v.Tokens = append(v.Tokens, openai.Token{Ref: fmt.Sprint("t", i), SHA256: strings.ToUpper(sha(fmt.Sprint("key", i))), Principal: "team"})
		}
	})
	for _, c := range []struct {
		header []string
		ok     bool
	}{
		{[]string{"Authorization", "Bearer key0"}, true},
		{[]string{"Authorization", "bearer key2"}, true},
		{[]string{"X-Api-Key", "key1"}, true},
		{[]string{"Authorization", "Bearer key"}, false},
		{[]string{"Authorization", "Basic key0"}, false},
		{[]string{"Authorization", "Bearer "}, false},
		{nil, false},
	} {
		for _, r := range []*reply{e.chat(hello, c.header...), e.do("GET", "/v1/models", "", c.header...)} {
			switch {
			case c.ok && r.StatusCode != 200:
				t.Errorf("%v: %d", c.header, r.StatusCode)
			case !c.ok:
				wantCode(t, r, 401, "invalid_api_key")
				if r.Header.Get("Www-Authenticate") == "" {
					t.Error("no WWW-Authenticate")
				}
			}
		}
	}
	if len(e.seen) != 3 {
		t.Errorf("%d admitted", len(e.seen))
	}
	if r := e.do("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Error("health needs a key")
	}
}

func TestProviderKeyGoesToTheProviderAlone(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.ProviderAuth = openai.ProviderAuth{Enabled: true, FromHeader: "X-IOP-Provider-Authorization", TargetHeader: "Authorization", Scheme: "Bearer", Required: true}
	})
	wantCode(t, e.chat(hello, "Authorization", "Bearer gateway"), 401, "provider_key_required")
	for _, sent := range []string{"own", "Bearer own"} {
		e.chat(hello, "Authorization", "Bearer gateway", "X-Iop-Provider-Authorization", sent)
		h := e.last().Header
		if h.Get("Authorization") != "Bearer own" || h.Get("X-Iop-Provider-Authorization") != "" {
			t.Error(h)
		}
	}
}

func TestIdempotencyKeyMakesTheRequestID(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("a"), Principal: "A"}, {Ref: "a2", SHA256: sha("a2"), Principal: "A"}, {Ref: "b", SHA256: sha("b"), Principal: "B"}}
	})
	ask := func(token, key, body string) openai.Request {
		e.chat(body, "X-Api-Key", token, "Idempotency-Key", key)
		return e.lastRequest()
	}
	first := ask("a", "k", hello)
	if again := ask("a2", "k", hello); again.ID != first.ID || again.Fingerprint != first.Fingerprint {
		t.Error("the same key of the same principal is another request")
	}
	if other := ask("b", "k", hello); other.ID == first.ID || other.Fingerprint == first.Fingerprint {
		t.Error("principals share a key")
	}
	if other := ask("a", "k2", hello+" "); other.ID == first.ID || other.Fingerprint == first.Fingerprint {
		t.Error("another key or body is the same request")
	}
	if free := ask("a", "", hello); free.ID == first.ID || free.Fingerprint != first.Fingerprint {
		t.Error("without a key the id must be new and the fingerprint the same")
	}
	if len(first.ID) > 128 {
		t.Error(first.ID)
	}
}

func TestRequestIDs(t *testing.T) {
	e := newEdge(t)
	if r := e.chat(hello, "X-Request-Id", "bad id!"); strings.Contains(r.Header.Get("X-Request-Id"), "bad") {
		t.Error("took over an insane id")
	}
	if r := e.chat(hello, "X-Request-Id", strings.Repeat("x", 129)); len(r.Header.Get("X-Request-Id")) > 128 {
		t.Error("took over a long id")
	}
	if a, b := e.chat(hello).Header.Get("X-Request-Id"), e.chat(hello).Header.Get("X-Request-Id"); a == b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}

// A client that sends one byte a second holds nothing, and is cut off.
func TestSlowBody(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.BodyTimeout = 200 * time.Millisecond })
	c, in := e.dial("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if _, err := c.Write([]byte(" ")); err != nil {
					return
				}
			}
		}
	}()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 408 || !res.Close || !strings.Contains(string(b), "request_timeout") {
		t.Errorf("%d %v %s", res.StatusCode, res.Close, b)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection stays open")
	}
	close(stop)
	<-done
	if len(e.seen) != 0 {
		t.Error("admitted")
	}
}

// A deadline for the body must not cut off the request that it belongs to.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) {
		o.BodyTimeout, o.StallTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	e.backend = func(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
		select {
		case <-ctx.Done():
		case <-time.After(150 * time.Millisecond):
		}
		return answerJSON(200, `{}`)(ctx, x, a)
	}
	_, in := e.dial(post(hello) + post(hello)) // two on one connection
	for range 2 {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _ = io.Copy(io.Discard, res.Body); res.StatusCode != 200 {
			t.Error(res.StatusCode)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	e := newEdge(t)
	_, in := e.dial(post(hello, "X-Large: "+strings.Repeat("x", 100<<10)))
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 431 {
		t.Error(res, err)
	}
	if len(e.seen) != 0 {
		t.Error("admitted")
	}
}

func TestClientLeavesWhileItSends(t *testing.T) {
	e := newEdge(t)
	c, _ := e.dial("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
	_ = c.Close()
	waitFor(t, "it is counted", func() bool { return strings.Contains(e.scraped(), `outcome="canceled"`) })
	if len(e.seen) != 0 {
		t.Error("admitted")
	}
}

func TestSwapWhileRequestsRun(t *testing.T) {
	e := newEdge(t)
	bad := view()
	bad.Models[0].Generation = json.RawMessage(`{"messages":1}`)
	if e.srv.Swap(bad) == nil {
		t.Error("took a policy that can't be")
	}
	bad = view()
	bad.Tokens = []openai.Token{{Ref: "x", SHA256: "12"}}
	if e.srv.Swap(bad) == nil {
		t.Error("took a hash that is none")
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = e.srv.Swap(view())
			}
		}
	}()
	for range 50 {
		if r := e.chat(hello); r.StatusCode != 200 {
			t.Error(r.StatusCode)
		}
	}
	close(stop)
	<-done
	if err := e.srv.Swap(&openai.View{}); err != nil {
		t.Error(err)
	}
	wantCode(t, e.chat(hello), 404, "model_not_found")
}
