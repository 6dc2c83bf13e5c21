package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// mapped is the backend's own answer with its model named as the client knows it.
func mapped(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`"model":"`+served("p1")+`"`), []byte(`"model":"m"`))
}

// trickyText has characters of every UTF-8 length, and text that looks like what the gateway looks for.
func trickyText() []string {
	return []string{"é", "…", "🙂", `"model":"` + served("p1") + `x"`, "\n\ndata: [DONE]\n\n", "\u2028\r\n", `\"model\"`}
}

// TestEverySplitArrivesUnchanged: wherever the backend's bytes are split, in the middle of characters, frames and the
// model's name, the client gets the backend's own bytes, the mapped model apart.
func TestEverySplitArrivesUnchanged(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 4)
	w := newWorld(t, l.unmetered())
	for name, plan := range map[string]backend.Plan{
		"tricky": {Text: trickyText(), Usage: true}, "comments and CR LF": {Text: trickyText()[:3], Comments: true},
	} {
		for _, stream := range []bool{true, false} {
			whole := plan.Plain("/v1/chat/completions", served("p1"))
			if stream {
				whole = bytes.Join(plan.Frames("/v1/chat/completions", served("p1")), nil)
			}
			want := mapped(whole)
			check := func(how string, p backend.Plan) {
				t.Helper()
				b.Set(p)
				a := w.want(200, ask{tag: name, stream: stream})
				if !bytes.Equal(a.body, want) {
					t.Fatalf("%s, stream %v, %s:\n got %q\nwant %q", name, stream, how, a.body, want)
				}
			}
			check("unsplit", plan)
			for _, split := range []int{1, 2, 3, 7} {
				p := plan
				p.Split = split
				check(fmt.Sprint("pieces of ", split), p)
			}
			step := rounds(5, 1)
			for at := 1; at < len(whole); at += step {
				p := plan
				p.CutAt = at
				check(fmt.Sprint("cut at ", at), p)
			}
		}
	}
	w.awaitIdle()
}

// TestHeadersArePassedOn: lengths are right after the model was renamed, a backend's Retry-After keeps its name, hop-by-hop
// headers stay behind, and the gateway's key never reaches the backend.
func TestHeadersArePassedOn(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Header: http.Header{
		"X-Backends-Own": {"yes"}, "X-Ratelimit-Remaining-Requests": {"7"}, "Keep-Alive": {"timeout=5"}, "Openai-Processing-Ms": {"12"},
	}}})
	l := shared(b, 1)
	l.tokens = map[string]string{"app": "key-of-the-client"}
	w := newWorld(t, l)
	for _, path := range inferenceRoutes {
		a := w.want(200, ask{path: path, token: "key-of-the-client", header: http.Header{
			"X-Custom": {"kept"}, "Accept-Encoding": {"gzip, br"}, "Te": {"trailers"}, "Connection": {"X-Only-Here"}, "X-Only-Here": {"1"},
		}})
		if n := a.header.Get("Content-Length"); n != "" && n != strconv.Itoa(len(a.body)) {
			t.Errorf("%s: Content-Length %s of %d bytes", path, n, len(a.body))
		}
		for _, h := range []string{"X-Backends-Own", "X-Ratelimit-Remaining-Requests", "Openai-Processing-Ms"} {
			if a.header.Get(h) == "" {
				t.Errorf("%s: the answer lacks %s", path, h)
			}
		}
		if a.header.Get("Keep-Alive") != "" {
			t.Errorf("%s: a hop-by-hop header came through", path)
		}
	}
	for _, r := range b.Runs() {
		for k, vs := range r.Header {
			if strings.Contains(strings.Join(vs, " "), "key-of-the-client") {
				t.Errorf("the backend got the client's key as %s", k)
			}
		}
		if e := r.Header.Get("Accept-Encoding"); containsAny(e, "gzip", "br") {
			t.Errorf("the backend may answer as %q, in which nobody can rename the model", e)
		}
		if r.Header.Get("X-Only-Here") != "" || r.Header.Get("Te") != "" {
			t.Errorf("hop-by-hop headers reached the backend: %v", r.Header)
		}
		if r.Model != served("p1") {
			t.Errorf("the backend was asked for %q", r.Model)
		}
	}
	s := w.open(ask{token: "key-of-the-client"})
	if s.res.Header.Get("X-Accel-Buffering") != "no" || !strings.HasPrefix(s.res.Header.Get("Content-Type"), "text/event-stream") ||
		!strings.Contains(s.res.Header.Get("Cache-Control"), "no-cache") {
		t.Errorf("headers of a stream: %v", s.res.Header)
	}
	s.rest()
	b.Set(backend.Plan{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: []byte(`{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)})
	a := w.ask(ask{token: "key-of-the-client"})
	if a.status != 429 || a.header.Get("Retry-After") != "7" || a.code() != "rate_limit_exceeded" {
		t.Errorf("the backend's 429: %d, Retry-After %q, %s", a.status, a.header.Get("Retry-After"), a.body)
	}
	w.awaitIdle()
	for _, p := range w.all {
		if p.says("key-of-the-client") {
			t.Errorf("%s logged the client's key", p.name)
		}
	}
}

// TestRawBackends: answers as real servers give them: no length, chunked with odd cuts, slow headers, an early hint, an
// answer that is no HTTP.
func TestRawBackends(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	body := string((&backend.Plan{}).Plain("/v1/chat/completions", served("p1")))
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chunks := ""
	for i := range len(body) {
		chunks += fmt.Sprintf("1;x=y\r\n%c\r\n", body[i])
	}
	for name, c := range map[string]struct {
		raw   string
		whole bool
	}{
		"until close":     {head + "Connection: close\r\n\r\n" + body, true},
		"one byte chunks": {head + "Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n", true},
		"with a trailer":  {head + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" + chunks + "0\r\nX-T: 1\r\n\r\n", true},
		"after a hint":    {"HTTP/1.1 100 Continue\r\n\r\n" + head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body, true},
		"HTTP/1.0":        {"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body, true},
		"short body":      {head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)+5) + body, false},
		"no last chunk":   {head + "Transfer-Encoding: chunked\r\n\r\n" + chunks, false},
		"no HTTP":         {"220 smtp.example.org ready\r\n", false},
		"nothing":         {"", false},
		"half a head":     {"HTTP/1.1 200 OK\r\nContent-Ty", false},
		"endless head":    {head + strings.Repeat("X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n", 100_000), false},
	} {
		b.SetFor(name, backend.Plan{Raw: []byte(c.raw)})
		a := w.ask(ask{tag: name})
		switch {
		case c.whole && (a.status != 200 || !a.clean || !bytes.Equal(a.body, mapped([]byte(body)))):
			t.Errorf("%s: %d, clean %v, %.300q", name, a.status, a.clean, a.body)
		case !c.whole && a.status == 200 && a.clean:
			t.Errorf("%s: looks whole: %.300q", name, a.body)
		case !c.whole && a.status != 200:
			a.wantError(t, 502, "provider_error")
		}
		w.want(200, ask{tag: "well"}) // in between: five failures at once in a row would degrade the provider
		w.awaitIdle()
	}
	b.SetFor("slow head", backend.Plan{SlowHead: 500_000})
	w.want(200, ask{tag: "slow head"})
	w.awaitIdle()
}
