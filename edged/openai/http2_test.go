package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

// second serves the edge by HTTP/2 as well, and gives a client that speaks nothing else.
func second(t *testing.T, e *edge) (*http.Client, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hs := e.srv.HTTP()
	hs.Protocols = new(http.Protocols)
	hs.Protocols.SetHTTP1(true)
	hs.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }()
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: only}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := hs.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return &http.Client{Transport: tr}, "http://" + l.Addr().String()
}

func streamed2(ctx context.Context, t *testing.T, c *http.Client, url string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.ProtoMajor != 2 {
		t.Fatalf("it speaks %s", res.Proto)
	}
	return res
}

// By HTTP/2 frames are flushed at once, a broken stream is reset and never ends cleanly, and one that is whole ends well;
// the others on the same connection are not touched.
func TestHTTP2Streams(t *testing.T) {
	e := newEdge(t)
	c, url := second(t, e)
	goOn := make(chan openai.End)
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		_ = a.Data([]byte("data: {\"a\":1}\n\n"))
		return <-goOn
	}
	first, next := streamed2(t.Context(), t, c, url), streamed2(t.Context(), t, c, url)
	for _, res := range []*http.Response{first, next} {
		if b := make([]byte, 15); must(io.ReadFull(res.Body, b)) != 15 { // before the backend goes on
			t.Fatalf("got %q", b)
		}
	}
	goOn <- openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}
	goOn <- openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	good, broken := 0, 0
	for _, res := range []*http.Response{first, next} {
		rest, err := io.ReadAll(res.Body)
		switch {
		case err == nil && len(rest) == 0:
			good++
		case err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR") && strings.Contains(string(rest), `"provider_error"`):
			broken++
		default:
			t.Errorf("it ended with %v: %q", err, rest)
		}
	}
	if good != 1 || broken != 1 {
		t.Errorf("%d ended well, %d were reset", good, broken)
	}
}

func must(n int, err error) int {
	if err != nil {
		return -1
	}
	return n
}

// A client that resets its stream cancels the run, and keeps its connection.
func TestHTTP2Abort(t *testing.T) {
	e := newEdge(t)
	c, url := second(t, e)
	e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		_ = a.Data([]byte("data: {\"a\":1}\n\n"))
		<-ctx.Done()
		return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	res := streamed2(ctx, t, c, url)
	cancel()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if why := e.free(); why != fsm.ReasonCanceled {
		t.Errorf("the lease came back as %v", why)
	}
}

// A body over the bound is refused over HTTP/2 too, with the reason.
func TestHTTP2TooLarge(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.MaxBodyBytes = 1000 })
	c, url := second(t, e)
	res, err := c.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+strings.Repeat("x", 5000)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 413 || !strings.Contains(string(b), "request_too_large") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
}
