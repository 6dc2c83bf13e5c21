package adapter_test

import (
	"net/http"
	"strings"
	"testing"

	"iop/noded/adapter"
)

func TestEveryFramingOfABodyIsRead(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 16<<10)
	for name, c := range map[string]struct {
		answer, body string
		closes       bool // the backend closes the connection after it
		reused       bool
	}{
		"content length":   {withLength("hello"), "hello", false, true},
		"empty":            {withLength(""), "", false, true},
		"long":             {withLength(long), long, false, true},
		"chunked":          {chunked("data: a\n\n", "data: b\n\n"), "data: a\n\ndata: b\n\n", false, true},
		"chunked long":     {chunked(long, "x", long), long + "x" + long, false, true},
		"to the close":     {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", true, false},
		"http 1.0":         {"HTTP/1.0 200 OK\r\n\r\nold", "old", true, false},
		"connection close": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", "hi", true, false},
		"after 1xx":        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + withLength("x"), "x", false, true},
		"trailers":         {"HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: v\r\n\r\n", "a", false, true},
		"bare LF":          {"HTTP/1.1 200 OK\nContent-Length: 1\n\na", "a", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRawBackend(t, func(r *rawConn) {
				for r.request() != nil {
					r.write(c.answer)
					if c.closes {
						return
					}
				}
			})
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
			for range 3 {
				r, end := do(t.Context(), o, post("{}"))
				wantEnd(t, end, adapter.DispatchedYes, "")
				if r.status != 200 || r.body.String() != c.body {
					t.Fatalf("status %d with %d bytes, want 200 with %d", r.status, r.body.Len(), len(c.body))
				}
				for _, name := range []string{"Connection", "Transfer-Encoding", "Trailer", "X-T", "Link"} {
					if r.header.Get(name) != "" {
						t.Errorf("the answer has the header %s", name)
					}
				}
			}
			want := int64(3)
			if c.reused {
				want = 1
			}
			if n := b.accepted.Load(); n != want {
				t.Errorf("%d connections for 3 calls, want %d", n, want)
			}
		})
	}
}

func TestAnswersWithoutABody(t *testing.T) {
	for name, c := range map[string]struct{ method, answer string }{
		"HEAD": {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"},
		"204":  {"DELETE", "HTTP/1.1 204 No Content\r\n\r\n"},
		"304":  {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRawBackend(t, always(c.answer))
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
			for range 2 {
				r, end := do(t.Context(), o, &adapter.Call{Method: c.method, Path: "/v1/x"})
				wantEnd(t, end, adapter.DispatchedYes, "")
				if r.status == 0 || r.pieces != 0 {
					t.Fatalf("status %d with %d pieces of body, want a status and none", r.status, r.pieces)
				}
			}
			if n := b.accepted.Load(); n != 1 {
				t.Errorf("%d connections for 2 calls, want 1", n)
			}
		})
	}
}

func TestHeadersAndStatusOfAnAnswerArePassed(t *testing.T) {
	b := newRawBackend(t, always("HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nX-RateLimit-Remaining: 0\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"+
		"Connection: keep-alive, x-hop\r\nX-Hop: gone\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n{}"))
	r, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
	want := http.Header{"Retry-After": {"7"}, "X-Ratelimit-Remaining": {"0"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Length": {"2"}}
	if r.status != 429 || len(r.header) != len(want) {
		t.Fatalf("status %d, headers %v; want 429, %v", r.status, r.header, want)
	}
	for name, values := range want {
		if strings.Join(r.header[name], "|") != strings.Join(values, "|") {
			t.Errorf("%s is %v, want %v", name, r.header[name], values)
		}
	}
}

// A stream is passed on as it comes: the backend sends the next byte only after the client has the last one.
func TestEachPieceIsPassedOnBeforeTheNextComes(t *testing.T) {
	const text = "data: {\"x\":\"\u00e4\U0001F600\"}\r\n\r\ndata: [DONE]\n\n"
	seen := make(chan int, 1)
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range len(text) {
			c.write("1\r\n" + text[i:i+1] + "\r\n")
			if n := <-seen; n != i+1 {
				return
			}
		}
		c.write("0\r\n\r\n")
	})
	r := recorder{onData: func(total int) error { seen <- total; return nil }}
	end := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Do(t.Context(), post("{}"), &r)
	wantEnd(t, end, adapter.DispatchedYes, "")
	if r.body.String() != text || r.pieces != len(text) {
		t.Fatalf("%d pieces, %q", r.pieces, r.body.String())
	}
}

func TestAnswersThatBreakAreNotEndedInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		d      adapter.Dispatched
		passed string
	}{
		"no answer":           {"", adapter.DispatchedUnknown, ""},
		"half a status line":  {"HTTP/1.", adapter.DispatchedYes, ""},
		"half the headers":    {"HTTP/1.1 200 OK\r\nContent-Le", adapter.DispatchedYes, ""},
		"1xx and no more":     {"HTTP/1.1 100 Continue\r\n\r\n", adapter.DispatchedYes, ""},
		"switched":            {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", adapter.DispatchedYes, ""},
		"not HTTP":            {"220 mail.example ESMTP\r\n", adapter.DispatchedYes, ""},
		"length too large":    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", adapter.DispatchedYes, "four"},
		"no body yet":         {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", adapter.DispatchedYes, ""},
		"length not a number": {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nfour", adapter.DispatchedYes, ""},
		"two lengths":         {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 3\r\n\r\nfour", adapter.DispatchedYes, ""},
		"no last chunk":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n", adapter.DispatchedYes, "four"},
		"within a chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nfour", adapter.DispatchedYes, "four"},
		"chunk not a number":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\nxyz\r\n", adapter.DispatchedYes, "four"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRawBackend(t, func(r *rawConn) {
				if r.request() != nil {
					r.write(c.answer)
				}
			})
			r, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), post("{}"))
			wantEnd(t, end, c.d, adapter.CodeBackendBroke)
			if r.body.String() != c.passed {
				t.Errorf("passed on %q, want %q", r.body.String(), c.passed)
			}
			if n := b.accepted.Load(); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

func TestAConnectionWithBytesLeftOverIsNotReused(t *testing.T) {
	b := newRawBackend(t, always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"))
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	for range 5 {
		r, end := do(t.Context(), o, post("{}"))
		wantEnd(t, end, adapter.DispatchedYes, "")
		if r.body.String() != "hi" {
			t.Fatalf("got %q, which belongs to nobody", r.body.String())
		}
	}
	if n := b.accepted.Load(); n != 5 {
		t.Errorf("%d connections for 5 calls", n)
	}
}

func TestHugeHeadersAreNotReadToTheirEnd(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write("HTTP/1.1 200 OK\r\n")
		for line := "X-Pad: " + strings.Repeat("x", 1000) + "\r\n"; ; {
			if _, err := c.Write([]byte(line)); err != nil {
				return
			}
		}
	})
	_, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, adapter.CodeBackendBroke)
	if !strings.Contains(end.Message, "headers") {
		t.Errorf("the message does not say why: %s", end.Message)
	}
}
