package openai_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
)

// refuser admits nobody.
type refuser struct{}

func (refuser) Run(context.Context, openai.Request, openai.Caller) error { return coded("queue_full") }
func (refuser) RetryAfter() time.Duration                                { return time.Second }

func record(method, path, body, kind string, h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// CORS is off unless it is configured; then only the origins that are named may read, and a preflight needs no key.
func TestCORS(t *testing.T) {
	off := newEdge(t)
	off.backend = answerAs("application/json", 200, `{}`)
	if r := off.chat(hello, "Origin", "https://app"); r.Header.Get("Access-Control-Allow-Origin") != "" || r.Header.Get("Vary") != "" {
		t.Errorf("it is not off: %v", r.Header)
	}
	wantCode(t, off.do("OPTIONS", "/v1/chat/completions", "", "Origin", "https://app", "Access-Control-Request-Method", "POST"), 405, "method_not_allowed")

	e := newEdge(t, func(o *openai.Options, v *openai.View) {
		o.CORS = openai.CORS{Origins: []string{"https://app"}, Headers: []string{"X-App"}, MaxAge: 10 * time.Minute}
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
	})
	r := e.do("OPTIONS", "/v1/chat/completions", "", "Origin", "https://app", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,x-app")
	h := r.Header
	if r.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "https://app" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.HasSuffix(h.Get("Access-Control-Allow-Headers"), "X-App") || h.Get("Access-Control-Max-Age") != "600" || h.Get("Vary") != "Origin" {
		t.Errorf("%d %v", r.StatusCode, h)
	}
	r = e.chat(hello, "Origin", "https://app", "Authorization", "Bearer secret")
	if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "https://app" || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := e.chat(hello, "Origin", "https://evil", "Authorization", "Bearer secret"); r.Header.Get("Access-Control-Allow-Origin") != "" || r.Header.Get("Vary") != "Origin" {
		t.Errorf("another origin is let in: %v", r.Header)
	}
	if r := e.chat(hello, "Origin", "https://app"); r.StatusCode != 401 || r.Header.Get("Access-Control-Allow-Origin") != "https://app" {
		t.Errorf("a page can't read why: %d %v", r.StatusCode, r.Header)
	}
}

// Where no key is needed, a page that the operator has not let in can't have work done: browsers send a plain POST for
// any page, whoever may read the answer.
func TestPageThatNobodyLetInGetsNoWorkDone(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.CORS = openai.CORS{Origins: []string{"https://app"}} })
	for _, origin := range []string{"https://evil", "null", "http://" + e.addr + ".evil", "http://%zz"} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/rerank"} {
			wantCode(t, e.do("POST", path, hello, "Origin", origin, "Content-Type", "text/plain"), 403, "forbidden_origin")
		}
		wantCode(t, e.do("POST", "/v1/responses/resp_1/cancel", "", "Origin", origin), 403, "forbidden_origin")
	}
	e.mu.Lock()
	if n := len(e.sent); n != 0 {
		t.Errorf("%d reached a provider", n)
	}
	e.mu.Unlock()
	for _, origin := range []string{"https://app", "http://" + e.addr, "vscode-webview://x", "chrome-extension://x"} {
		if r := e.chat(hello, "Origin", origin); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", origin, r.StatusCode, r.body)
		}
	}
	keys := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
	})
	if r := keys.chat(hello, "Origin", "https://evil", "Authorization", "Bearer secret"); r.StatusCode != 200 {
		t.Errorf("who has a key is turned away: %d %s", r.StatusCode, r.body)
	}
}

// A name that was made to point here (DNS rebinding) makes a page one of the gateway's own origin, for the browser. Only
// where no key is needed does it matter, and only names can be made to.
func TestPageOfAReboundNameGetsNoWorkDone(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.CORS = openai.CORS{Origins: []string{"http://chat.lan"}} })
	_, port, err := net.SplitHostPort(e.addr)
	if err != nil {
		t.Fatal(err)
	}
	post := func(e *edge, host string, header ...string) string {
		raw := "POST /v1/chat/completions HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Type: application/json\r\n"
		for i := 0; i < len(header); i += 2 {
			raw += header[i] + ": " + header[i+1] + "\r\n"
		}
		conn, in := e.dial(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", raw, len(hello), hello))
		defer func() { _ = conn.Close() }()
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(line)[1]
	}
	for host, want := range map[string]string{
		"evil.example:" + port: "403", "localhost.evil.example": "403", "127.0.0.1.evil.example:" + port: "403",
		"127.0.0.1:" + port: "200", "localhost:" + port: "200", "app.localhost": "200", "[::1]:" + port: "200", "chat.lan": "200",
	} {
		if got := post(e, host, "Origin", "http://"+host); got != want {
			t.Errorf("a page of %s: %s, want %s", host, got, want)
		}
	}
	if got := post(e, "gateway.lan:"+port); got != "200" {
		t.Errorf("a program is no page: %s", got)
	}
	keys := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
	})
	if got := post(keys, "gateway.lan", "Origin", "http://gateway.lan", "Authorization", "Bearer secret"); got != "200" {
		t.Errorf("who has a key: %s", got)
	}
}

// A backend's own word on origins does not reach the client.
func TestCORSOfBackendsIsDropped(t *testing.T) {
	e := newEdge(t)
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}, "Access-Control-Allow-Origin": {"*"}, "X-Backend": {"kept"}})
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
	if r := e.chat(hello); r.Header.Get("Access-Control-Allow-Origin") != "" || r.Header.Get("X-Backend") != "kept" {
		t.Errorf("%v", r.Header)
	}
}

// The count of header fields is bounded, and so is their size.
func TestHeaderLimits(t *testing.T) {
	e := newEdge(t)
	var many []string
	for i := range 201 {
		many = append(many, fmt.Sprintf("X-H%d", i), "v")
	}
	wantCode(t, e.chat(hello, many...), 431, "too_many_headers")
	if r := e.chat(hello, many[:2*100]...); r.StatusCode != 200 {
		t.Errorf("100 fields are answered %d", r.StatusCode)
	}
	if r := e.chat(hello, "X-Long", strings.Repeat("x", 100<<10)); r.StatusCode != 431 {
		t.Errorf("100 KiB of headers are answered %d", r.StatusCode)
	}
}

// Keys and cookies that are meant for somebody else do not reach a provider: with an Api-Key of its own, a request would go
// there without the node's key.
func TestForeignSecretsAreNotPassedOn(t *testing.T) {
	e := newEdge(t)
	if r := e.chat(hello, "Api-Key", "azure", "Cookie", "session=1", "X-Kept", "yes"); r.StatusCode != 200 {
		t.Fatal(r.StatusCode)
	}
	h := e.last().Header
	if h.Get("Api-Key") != "" || h.Get("Cookie") != "" || h.Get("X-Kept") != "yes" {
		t.Errorf("%v", h)
	}
}
