package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"iop/edged/openai"
	"iop/fsm"
)

func TestPassesARequestThrough(t *testing.T) {
	e := newEdge(t)
	body := "{ \"unknown\": [1, {\"model\": \"ornith:35b\"}],\n\t\"model\" : \"ornith:35b\", \"x\":\"é漢\\u00e9\" }"
	r := e.do("POST", "/v1/chat/completions?a=%2Fb&c=1", body, "Authorization", "Bearer secret", "X-Api-Key", "k", "X-Custom", "kept",
		"Connection", "X-Hop", "X-Hop", "1", "Te", "trailers", "Accept-Encoding", "gzip", "X-Request-Id", "mine-1", "Traceparent", "00-ab-cd-01")
	if want := `{"id":"1","model":"ornith:35b"}`; r.StatusCode != 200 || r.body != want || r.ContentLength != int64(len(want)) {
		t.Errorf("%d %s (%d)", r.StatusCode, r.body, r.ContentLength)
	}
	for name, want := range map[string]string{
		"X-Request-Id": "mine-1", "X-Iop-Provider": "p1", "X-Iop-Node": "n1", "X-Iop-Queue-Ms": "12", "X-Iop-Lease": "1",
		"X-Iop-Dispatched": "true", "X-Backend": "yes", "X-Drop": "", "Content-Type": "application/json", "X-Iop-Estimated-Tokens": "0",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	x := e.last()
	if want := strings.Replace(body, `"model" : "ornith:35b"`, `"model" : "served/ornith:35b"`, 1); string(x.Body) != want {
		t.Errorf("the backend got %s", x.Body)
	}
	if x.Path != "/v1/chat/completions?a=%2Fb&c=1" || x.Method != "POST" || x.Adapter != "a1" || x.Trace != "" || x.Header.Get("Traceparent") != "00-ab-cd-01" {
		t.Errorf("%+v", x)
	}
	for _, gone := range []string{"Authorization", "X-Api-Key", "Connection", "X-Hop", "Te", "Accept-Encoding", "Content-Length", "Keep-Alive"} {
		if v, ok := x.Header[gone]; ok {
			t.Errorf("%s reached the backend: %q", gone, v)
		}
	}
	if x.Header.Get("X-Custom") != "kept" {
		t.Error("X-Custom was lost")
	}
	if why := e.free(); why != fsm.ReasonDone {
		t.Error(why)
	}
}

func TestSameServedNamePassesTheBodyAsItIs(t *testing.T) {
	e := newEdge(t)
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		c.Dispatch(ctx, fsm.Grant{Lease: 1, Model: q.Model, Provider: "p1", Served: string(q.Model)}, 0)
		return nil
	}
	body := `{"model":"same", "x": 1}`
	if e.chat(body); string(e.last().Body) != body {
		t.Errorf("%s", e.last().Body)
	}
	// The same name, but written with an escape, and twice: all places get the served name.
	if e.chat(`{"model":"other","model":"s\u0061me"}`); string(e.last().Body) != `{"model":"same","model":"same"}` {
		t.Errorf("%s", e.last().Body)
	}
}

func TestGenerationPolicy(t *testing.T) {
	e := newEdge(t)
	for _, c := range []struct{ path, in, want string }{
		{"chat/completions", `{"model":M}`, `{"max_tokens":100,"stop":["x"],"temperature":0.5,"model":S}`},
		{"chat/completions", `{"model":M,"max_tokens":5000,"temperature":1}`, `{"stop":["x"],"model":S,"max_tokens":100,"temperature":1}`},
		{"chat/completions", `{"model":M,"max_tokens":50,"stop":null}`, `{"temperature":0.5,"model":S,"max_tokens":50,"stop":["x"]}`},
		{"chat/completions", `{"model":M,"max_tokens":null}`, `{"stop":["x"],"temperature":0.5,"model":S,"max_tokens":100}`},
		{"chat/completions", `{"model":M,"max_completion_tokens":1e9,"stop":"y","temperature":0}`, `{"model":S,"max_completion_tokens":100,"stop":"y","temperature":0}`},
		{"chat/completions", `{"model":M,"max_tokens":-1,"max_tokens":"999","stop":0,"temperature":0}`, `{"model":S,"max_tokens":100,"max_tokens":100,"stop":0,"temperature":0}`},
		{"completions", `{"model":M,"stop":0,"temperature":0,"max_tokens":1}`, `{"model":S,"stop":0,"temperature":0,"max_tokens":1}`},
		{"embeddings", `{"model":M,"max_tokens":5000}`, `{"model":S,"max_tokens":5000}`},
	} {
		m := strings.NewReplacer("M", `"org/model:7b"`, "S", `"served/org/model:7b"`)
		e.do("POST", "/v1/"+c.path, m.Replace(c.in))
		if got, want := string(e.last().Body), m.Replace(c.want); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, want)
		}
	}
}

func TestNeedsClassAndEstimate(t *testing.T) {
	e := newEdge(t)
	for path, needs := range map[string]fsm.Needs{
		"chat/completions": fsm.NeedChat, "completions": fsm.NeedCompletions, "embeddings": fsm.NeedEmbeddings,
	} {
		e.do("POST", "/v1/"+path, `{"model":"same"}`)
		if q := e.lastRequest(); q.Needs != needs || q.Class != fsm.ClassNormal {
			t.Errorf("%s: %+v", path, q)
		}
	}
	r := e.chat(`{"model":"same","messages":[{"role":"user","content":"` + strings.Repeat("word ", 2000) + `"}]}`)
	if q := e.lastRequest(); q.Class != fsm.ClassLong || r.Header.Get("X-Iop-Estimated-Tokens") != fmt.Sprint(q.InputTokens) || q.InputTokens < 2000 {
		t.Errorf("%+v", q)
	}
}

// Fault: large bodies fail or are truncated.
func TestLargeBodyPasses(t *testing.T) {
	e := newEdge(t)
	big := strings.Repeat("0123456789abcdef", 20<<20/16)
	r := e.chat(`{"model":"ornith:35b","messages":[{"content":"` + big + `"}]}`)
	if r.StatusCode != 200 || string(e.last().Body) != `{"model":"served/ornith:35b","messages":[{"content":"`+big+`"}]}` {
		t.Errorf("%d, %d bytes", r.StatusCode, len(e.last().Body))
	}
	// And in chunks, without an announced length.
	q, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+e.addr+"/v1/chat/completions", io.MultiReader(
		strings.NewReader(`{"model":"same","x":"`), strings.NewReader(big[:3<<20]), strings.NewReader(`"}`)))
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 || len(e.last().Body) < 3<<20 {
		t.Errorf("%d, %d bytes", res.StatusCode, len(e.last().Body))
	}
}

func TestAnswersOfEveryKind(t *testing.T) {
	e := newEdge(t)
	long := `{"model":"served/ornith:35b","x":"` + strings.Repeat("y", 1<<20) + `"}`
	binary := string(bytes.Repeat([]byte{0, 255, '\n', '"'}, 1000))
	for _, c := range []struct {
		name, kind string
		status     int
		in, want   string
		length     bool
	}{
		{"small", "application/json; charset=utf-8", 200, `{"model":"served/ornith:35b"}`, `{"model":"ornith:35b"}`, true},
		{"over the buffer", "application/json", 200, long, strings.Replace(long, "served/", "", 1), false},
		{"an error of the backend", "application/json", 400, `{"error":{"code":400,"message":"no","type":"x"}}`, `{"error":{"code":400,"message":"no","type":"x"}}`, true},
		{"a complete 503", "text/html", 503, "<h1>busy</h1>", "<h1>busy</h1>", true},
		{"not json", "audio/wav", 200, binary, binary, true},
		{"nothing", "application/json", 204, "", "", false},
	} {
		e.backend = answerAs(c.kind, c.status, c.in)
		r := e.chat(hello)
		if r.StatusCode != c.status || r.body != c.want || r.err != nil {
			t.Errorf("%s: %d, %d bytes, %v", c.name, r.StatusCode, len(r.body), r.err)
		}
		if c.length != (r.ContentLength == int64(len(c.want)) && len(c.want) > 0) {
			t.Errorf("%s: Content-Length %d", c.name, r.ContentLength)
		}
		if r.Header.Get("X-Iop-Dispatched") != "true" {
			t.Errorf("%s: x-iop-dispatched %q", c.name, r.Header.Get("X-Iop-Dispatched"))
		}
	}
}
