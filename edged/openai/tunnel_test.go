package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

func can(needs fsm.Needs) func(*openai.Options, *openai.View) {
	return func(_ *openai.Options, v *openai.View) { v.Providers[0].Can = needs }
}

// Any other POST that names a model goes, as it is, to a provider that declares its capability. Its path stays as it was
// encoded, x-* headers are handled as on every route.
func TestTunnel(t *testing.T) {
	all := fsm.NeedRerank | fsm.NeedScore | fsm.NeedAudio | fsm.NeedImages | fsm.NeedTokenize | fsm.NeedModerations | fsm.NeedOther
	e := newEdge(t, can(all))
	for path, needs := range map[string]fsm.Needs{
		"/v1/rerank": fsm.NeedRerank, "/v1/score": fsm.NeedScore, "/v1/tokenize": fsm.NeedTokenize, "/v1/detokenize": fsm.NeedTokenize,
		"/v1/moderations": fsm.NeedModerations, "/v1/images/generations?n=1": fsm.NeedImages, "/v1/audio/speech": fsm.NeedAudio,
		"/v1/pooling/a%2Fb%20c": fsm.NeedOther,
	} {
		r := e.do("POST", path, `{"query":"q","model":"org/model:7b","documents":["a"]}`, "X-Custom", "kept", "Authorization", "Bearer gone")
		sent := e.last()
		if r.StatusCode != 200 || sent.Path != path || string(sent.Body) != `{"query":"q","model":"served/org/model:7b","documents":["a"]}` {
			t.Errorf("%s: %d, sent to %s: %s", path, r.StatusCode, sent.Path, sent.Body)
		}
		if e.lastRequest().Needs != needs || sent.Header.Get("X-Custom") != "kept" || sent.Header.Get("Authorization") != "" || r.Header.Get("X-Iop-Lease") == "" {
			t.Errorf("%s: needs %b, %v, %v", path, e.lastRequest().Needs, sent.Header, r.Header)
		}
	}
	// What is no JSON comes back as it is.
	e.backend = answerAs("audio/mpeg", 200, "\xff\xfb\x00", "served/ornith:35b")
	if r := e.do("POST", "/v1/audio/speech", `{"model":"ornith:35b","input":"hi"}`); r.body != "\xff\xfb\x00served/ornith:35b" || r.Header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("%q %v", r.body, r.Header)
	}
}

// In a multipart form the model is a field; the rest of the form, files included, is not touched.
func TestTunnelForm(t *testing.T) {
	e := newEdge(t, can(fsm.NeedAudio))
	form := func(model string) (body, kind string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, err := w.CreateFormFile("file", "model.wav")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte("RIFF\r\n--" + w.Boundary() + "x name=\"model\"\r\n\r\nno\x00\xff"))
		if model != "" {
			_ = w.WriteField("model", model)
		}
		_ = w.WriteField("language", "de")
		_ = w.Close()
		return b.String(), w.FormDataContentType()
	}
	body, kind := form("org/model:7b")
	r := e.do("POST", "/v1/audio/transcriptions", body, "Content-Type", kind)
	sent := e.last()
	if want := strings.Replace(body, "org/model:7b", "served/org/model:7b", 1); r.StatusCode != 200 || string(sent.Body) != want || sent.Header.Get("Content-Type") != kind {
		t.Errorf("%d %s: sent %q, want %q", r.StatusCode, r.body, sent.Body, want)
	}
	body, kind = form("")
	wantCode(t, e.do("POST", "/v1/audio/transcriptions", body, "Content-Type", kind), 400, "invalid_request")
	body, kind = form("nope")
	wantCode(t, e.do("POST", "/v1/audio/transcriptions", body, "Content-Type", kind), 404, "model_not_found")
	wantCode(t, e.do("POST", "/v1/audio/transcriptions", "torn", "Content-Type", kind), 400, "invalid_request")
}

// Where nobody has a route the answer says what is missing and who can add it.
func TestTunnelRefused(t *testing.T) {
	e := newEdge(t, can(fsm.NeedRerank))
	r := e.do("POST", "/v1/images/generations", `{"model":"ornith:35b"}`)
	wantCode(t, r, 404, "unknown_url")
	if !strings.Contains(r.body, "'images'") || !strings.Contains(r.body, "capabilities") || r.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%v %s", r.Header, r.body)
	}
	e.run = func(context.Context, openai.Request, openai.Caller) error { return coded("unsupported") }
	r = e.do("POST", "/v1/rerank", `{"model":"ornith:35b"}`)
	wantCode(t, r, 404, "unsupported_by_model")
	if !strings.Contains(r.body, "'rerank'") {
		t.Errorf("it does not say what is missing: %s", r.body)
	}
	wantCode(t, e.do("POST", "/v1/rerank", `{"query":"q"}`), 400, "invalid_request")
	for _, path := range []string{"/v1/rerank/../admin", "/v1/rerank/%2e%2e/admin", "/v1//rerank", "/v1/rerank/", "/v1/./rerank"} {
		wantCode(t, e.do("POST", path, `{"model":"ornith:35b"}`), 404, "unknown_url")
	}
	if len(e.sent) != 0 {
		t.Errorf("sent %v", e.sent)
	}
	closed := newEdge(t, can(fsm.NeedRerank), func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "a", SHA256: sha("secret"), Principal: "team"}}
	})
	wantCode(t, closed.do("POST", "/v1/rerank", `{}`), 401, "invalid_api_key")
}

// A model's name with quotes can't break out of the form or of JSON.
func FuzzForm(f *testing.F) {
	f.Add("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nornith:35b\r\n--b--\r\n")
	f.Add("--b\r\n\r\n\r\n--b\r\n")
	f.Add("x--b--b\r\n--b")
	f.Fuzz(func(t *testing.T, body string) {
		srv := openai.New(openai.Options{Runner: refuser{}})
		v := view()
		v.Providers[0].Can = fsm.NeedAudio
		if err := srv.Swap(v); err != nil {
			t.Fatal(err)
		}
		w := record("POST", "/v1/audio/transcriptions", body, "multipart/form-data; boundary=b", srv)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q is answered %q", body, w.Body)
		}
	})
}

// A backend's own Retry-After reaches the client under its own name, and its x-* headers pass alike on every route.
func TestBackendsHeadersPassOnEveryRoute(t *testing.T) {
	e := newEdge(t, can(fsm.NeedChat|fsm.NeedMessages|fsm.NeedRerank))
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(429, http.Header{"Content-Type": {"application/json"}, "Retry-After": {"33"}, "X-Ratelimit-Remaining-Requests": {"0"}, "X-Backend": {"b"}})
		_ = a.Data([]byte(`{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`))
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/v1/rerank"} {
		r := e.do("POST", path, `{"model":"ornith:35b","max_tokens":5,"input":"x","messages":[{"role":"user","content":"x"}]}`)
		if r.StatusCode != 429 || r.Header.Get("Retry-After") != "33" || r.Header.Get("X-Ratelimit-Remaining-Requests") != "0" || r.Header.Get("X-Backend") != "b" || r.Header.Get("X-Iop-Lease") == "" || !strings.Contains(r.body, "slow down") {
			t.Errorf("%s: %d %v %s", path, r.StatusCode, r.Header, r.body)
		}
	}
}
