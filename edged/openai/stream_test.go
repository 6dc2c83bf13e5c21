package openai_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

var sse = http.Header{"Content-Type": {"text/event-stream"}}

const streamed = `{"model":"ornith:35b","stream":true}`

// Fault: a buffer between backend and client. Each frame must be with the client before the next is made.
func TestFramesAreFlushedAtOnce(t *testing.T) {
	e := newEdge(t)
	next := make(chan struct{})
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		<-next
		for i := range 20 {
			_ = a.Data(fmt.Appendf(nil, "data: {\"model\":\"served/ornith:35b\",\"n\":%d}\n\n", i))
			<-next
		}
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
	q, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+e.addr+"/v1/chat/completions", strings.NewReader(streamed))
	res, err := http.DefaultClient.Do(q) // returns although no data has come yet
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "no-cache" || res.ContentLength != -1 {
		t.Error(res.Header)
	}
	in := bufio.NewReader(res.Body)
	for i := range 20 {
		next <- struct{}{}
		want := fmt.Sprintf("data: {\"model\":\"ornith:35b\",\"n\":%d}\n", i)
		if line, err := in.ReadString('\n'); line != want {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = in.ReadString('\n')
	}
	next <- struct{}{}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	if why := e.free(); why != fsm.ReasonDone {
		t.Error(why)
	}
}

// Fault: a backend killed in mid-stream looks like a clean 200 with an orderly end.
func TestBrokenStreamIsSeenAsBroken(t *testing.T) {
	for _, c := range []struct{ name, sent, between string }{
		{"between frames", "data: {\"a\":1}\n\n", ""},
		{"in an event", "data: {\"a\":1}\n", "\n"},
		{"in a line", "data: {\"a\"", "\n\n"},
		{"in a model's name", "data: {\"model\":\"served/orn", "\n\n"},
		{"before the first frame", "", ""},
	} {
		for _, proto := range []string{"1.1", "1.0"} {
			t.Run(c.name+" HTTP/"+proto, func(t *testing.T) {
				e := newEdge(t)
				e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
					_ = a.Head(200, sse.Clone())
					_ = a.Data([]byte(c.sent))
					return openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke", Message: "connection reset"}
				}
				_, in := e.dial(strings.Replace(post(streamed), "HTTP/1.1", "HTTP/"+proto, 1))
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				if err == nil {
					t.Errorf("ended cleanly after %q", b)
				}
				if want := c.sent + c.between + `data: {"error":{"message":"The provider failed`; !strings.HasPrefix(string(b), want) {
					t.Errorf("got %q, want %q…", b, want)
				}
				if !strings.Contains(string(b), `"code":"provider_error"}}`) || strings.Contains(string(b), "[DONE]") {
					t.Errorf("got %q", b)
				}
				if why := e.free(); why != fsm.ReasonBackendError {
					t.Error(why)
				}
			})
		}
	}
}

func TestBrokenLargeAnswerIsSeenAsBroken(t *testing.T) {
	e := newEdge(t)
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, http.Header{"Content-Type": {"application/json"}})
		_ = a.Data([]byte(`{"x":"` + strings.Repeat("y", 1<<20)))
		return openai.End{Dispatched: openai.DispatchedYes, Code: "link_lost"}
	}
	if r := e.chat(hello); r.err == nil {
		t.Error("ended cleanly")
	}
	if why := e.free(); why != fsm.ReasonLinkLost {
		t.Error(why)
	}
}

func TestBackendFailsBeforeTheFirstByte(t *testing.T) {
	e := newEdge(t)
	for _, c := range []struct {
		end        openai.End
		partial    bool
		status     int
		code, told string
		why        fsm.Reason
	}{
		{openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}, false, 502, "provider_error", "true", fsm.ReasonBackendError},
		{openai.End{Dispatched: openai.DispatchedYes, Code: "backend_broke"}, true, 502, "provider_error", "true", fsm.ReasonBackendError},
		{openai.End{Dispatched: openai.DispatchedUnknown, Code: "link_lost"}, false, 502, "provider_error", "unknown", fsm.ReasonLinkLost},
		{openai.End{Dispatched: openai.DispatchedYes, Code: "backend_timeout"}, false, 504, "provider_timeout", "true", fsm.ReasonTimeout},
		{openai.End{Dispatched: openai.DispatchedYes, Complete: true}, false, 502, "provider_error", "true", fsm.ReasonBackendError},
		{openai.End{Dispatched: openai.DispatchedNo, Code: "bad_call", Message: "header"}, false, 400, "invalid_request", "false", fsm.ReasonNotRun},
	} {
		e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
			if c.partial {
				_ = a.Head(200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"100"}})
				_ = a.Data([]byte(`{"half":`))
			}
			return c.end
		}
		for _, body := range []string{hello, streamed} {
			r := e.chat(body)
			wantCode(t, r, c.status, c.code)
			if got := r.Header.Get("X-Iop-Dispatched"); got != c.told {
				t.Errorf("%s: x-iop-dispatched %q, want %q", c.end.Code, got, c.told)
			}
			if why := e.free(); why != c.why {
				t.Errorf("%s: returned as %s", c.end.Code, why)
			}
		}
	}
}

func TestNotRunGoesToAnotherProvider(t *testing.T) {
	e := newEdge(t)
	tries := 0
	e.backend = func(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
		if tries++; tries < 3 {
			if tries == 2 {
				_ = a.Head(503, http.Header{"Content-Type": {"application/json"}})
				_ = a.Data([]byte(`{"error":{"message":"Loading model"}}`))
			}
			return openai.End{Dispatched: openai.DispatchedNo, Code: "busy"}
		}
		return answerJSON(200, `{"model":"served/ornith:35b"}`)(ctx, x, a)
	}
	if r := e.chat(hello); r.StatusCode != 200 || r.body != `{"model":"ornith:35b"}` || e.requeued != 2 {
		t.Errorf("%d %s after %d requeues", r.StatusCode, r.body, e.requeued)
	}
	if string(e.last().Body) != strings.Replace(hello, "ornith", "served/ornith", 1) {
		t.Errorf("the last backend got %s", e.last().Body)
	}
}

// Fault: the true cause disappears behind the gateway's own error.
func TestNobodyTakesTheRequest(t *testing.T) {
	e := newEdge(t)
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(503, http.Header{"Content-Type": {"application/json"}, "Retry-After": {"17"}})
		_ = a.Data([]byte(`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`))
		return openai.End{Dispatched: openai.DispatchedNo, Code: "busy"}
	}
	r := e.chat(hello)
	if r.StatusCode != 503 || !strings.Contains(r.body, "Loading model") || r.Header.Get("Retry-After") != "17" || r.Header.Get("X-Iop-Dispatched") != "false" {
		t.Errorf("%d %s %v", r.StatusCode, r.body, r.Header)
	}
	e.backend = func(context.Context, *openai.Exchange, openai.Answer) openai.End {
		return openai.End{Dispatched: openai.DispatchedNo, Code: "connect_failed", Message: "connect to backend: dial tcp 10.1.2.3:8000: connection refused"}
	}
	r = e.chat(hello)
	wantCode(t, r, 503, "provider_unavailable")
	if !strings.Contains(r.body, "refused the connection") || strings.Contains(r.body, "10.1.2.3") || r.Header.Get("X-Iop-Dispatched") != "false" || r.Header.Get("Retry-After") != "7" {
		t.Errorf("%s %v", r.body, r.Header)
	}
	if why := e.free(); why != fsm.ReasonNotRun {
		t.Error(why)
	}
}

// waitThen is a Runner that makes a request wait for n signs of life.
func (e *edge) waitThen(n int, then func(ctx context.Context, q openai.Request, c openai.Caller) error) {
	e.run = func(ctx context.Context, q openai.Request, c openai.Caller) error {
		for i := range n + 1 {
			c.Queued(5 - i)
		}
		return then(ctx, q, c)
	}
}

func TestSignsOfLifeWhileAStreamWaits(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.QueueKeepalive = time.Hour })
	granted := func(ctx context.Context, q openai.Request, c openai.Caller) error { e.dispatch(ctx, q, c); return nil }
	e.waitThen(2, granted)
	e.backend = answerAs("text/event-stream", 200, "data: {\"model\":\"served/ornith:35b\"}\n\n", "data: [DONE]\n\n")
	r := e.chat(streamed)
	if want := ": queued position=4\n\n: queued position=3\n\ndata: {\"model\":\"ornith:35b\"}\n\ndata: [DONE]\n\n"; r.body != want || r.err != nil {
		t.Errorf("%q %v", r.body, r.err)
	}
	if e.lastRequest().Tick != time.Hour || r.Header.Get("Content-Type") != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Error(r.Header)
	}
	e.waitThen(0, granted) // it did not wait long: the status is still open
	e.backend = answerJSON(400, `{"error":{"message":"no"}}`)
	if r := e.chat(streamed); r.StatusCode != 400 {
		t.Error(r.StatusCode)
	}
	e.waitThen(1, func(context.Context, openai.Request, openai.Caller) error { return coded("queue_timeout") })
	r = e.chat(streamed)
	if r.StatusCode != 200 || !strings.HasPrefix(r.body, ": queued position=4\n\ndata: {\"error\":{") || !strings.Contains(r.body, `"queue_timeout"`) || r.err == nil {
		t.Errorf("%d %q %v", r.StatusCode, r.body, r.err)
	}
	e.waitThen(1, granted)
	e.backend = answerJSON(400, "{\n \"error\": {\"message\":\"too\\nlong\",\"code\":400}}\n")
	if r = e.chat(streamed); r.err == nil || r.body != ": queued position=4\n\ndata: {\"error\":{\"message\":\"too\\nlong\",\"code\":400}}\n\n" {
		t.Errorf("%q %v", r.body, r.err)
	}
	e.chat(hello)
	if e.lastRequest().Tick != 0 {
		t.Error("what is no stream gets signs of life")
	}
}

// Fault: a client that leaves is not noticed, in the queue, before the first byte, or in mid-stream.
func TestClientLeaves(t *testing.T) {
	for _, when := range []string{"in the queue", "before the first byte", "in mid-stream", "while nothing is sent in mid-stream"} {
		t.Run(when, func(t *testing.T) {
			e := newEdge(t)
			there, left := make(chan struct{}), make(chan struct{})
			if when == "in the queue" {
				e.run = func(ctx context.Context, _ openai.Request, _ openai.Caller) error {
					close(there)
					<-ctx.Done()
					close(left)
					return context.Cause(ctx)
				}
			}
			e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
				if when != "before the first byte" {
					_ = a.Head(200, sse.Clone())
					_ = a.Data([]byte("data: {}\n\n"))
				}
				close(there)
				defer close(left)
				for when == "in mid-stream" {
					if err := a.Data([]byte("data: {\"usage\":{\"completion_tokens\":3}}\n\n")); err != nil {
						return openai.End{Dispatched: openai.DispatchedYes, Code: "answer_failed"}
					}
					if ctx.Err() != nil {
						break
					}
				}
				<-ctx.Done()
				return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
			}
			c, _ := e.dial(post(streamed))
			<-there
			_ = c.Close()
			<-left
			if when != "in the queue" {
				if why := e.free(); why != fsm.ReasonCanceled {
					t.Error(why)
				}
			}
			waitFor(t, "the request is counted as canceled", func() bool {
				return strings.Contains(e.scraped(), `outcome="canceled"`) && strings.Contains(e.scraped(), "iop_open_requests 0")
			})
			// Fault: usage of aborted streams is lost.
			if when == "in mid-stream" && !strings.Contains(e.scraped(), `iop_tokens_out_total{model="ornith:35b",principal_ref="none",provider="p1",token_ref="none"} 3`) {
				t.Error("its tokens are not counted")
			}
		})
	}
}

// Fault: a request that the edge itself cuts off looks like an empty 200.
func TestCutOffByTheEdge(t *testing.T) {
	for _, when := range []string{"waiting", "running", "streaming"} {
		t.Run(when, func(t *testing.T) {
			e := newEdge(t)
			if when == "waiting" {
				e.run = func(ctx context.Context, _ openai.Request, _ openai.Caller) error {
					e.cutOff()
					<-ctx.Done()
					return context.Cause(ctx)
				}
			}
			e.backend = func(ctx context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
				if when == "streaming" {
					_ = a.Head(200, sse.Clone())
				}
				e.cutOff()
				<-ctx.Done()
				return openai.End{Dispatched: openai.DispatchedYes, Code: "canceled"}
			}
			r := e.chat(streamed)
			if when == "streaming" {
				if r.err == nil || !strings.Contains(r.body, `"code":"stopping"`) {
					t.Errorf("%q %v", r.body, r.err)
				}
				return
			}
			wantCode(t, r, 503, "stopping")
			if r.Header.Get("Retry-After") == "" || !r.Close {
				t.Error(r.Header)
			}
		})
	}
}

func waitFor(t *testing.T, fact string, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("never: " + fact)
}

// Fault: a client that stops reading holds up others, or its slot for ever.
func TestSlowReaderHoldsOnlyItsOwnRun(t *testing.T) {
	e := newEdge(t, func(o *openai.Options, _ *openai.View) { o.StallTimeout = 300 * time.Millisecond })
	blocked := make(chan struct{})
	e.backend = func(_ context.Context, x *openai.Exchange, a openai.Answer) openai.End {
		if !strings.Contains(string(x.Body), "slow") {
			return answerJSON(200, `{}`)(nil, x, a)
		}
		_ = a.Head(200, sse.Clone())
		piece := []byte("data: " + strings.Repeat("x", 32<<10) + "\n\n")
		for n := 0; ; n++ {
			if n == 100 {
				close(blocked)
			}
			if err := a.Data(piece); err != nil {
				return openai.End{Dispatched: openai.DispatchedYes, Code: "answer_failed", Message: err.Error()}
			}
		}
	}
	c, _ := e.dial(post(`{"model":"same","stream":true,"x":"slow"}`))
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	<-blocked
	for range 20 {
		if r := e.chat(hello); r.StatusCode != 200 {
			t.Error(r.StatusCode)
		}
	}
	waitFor(t, "the stalled run ends", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.held == 0 })
}

// Fault: 30 streams of 5 MiB at the same time starve readiness probes. They also come through whole.
func TestManyLargeStreams(t *testing.T) {
	e := newEdge(t)
	piece := []byte("data: {\"model\":\"served/ornith:35b\",\"x\":\"" + strings.Repeat("é", 8<<10) + "\"}\n\n")
	want := strings.Repeat(strings.Replace(string(piece), "served/", "", 1), 320)
	e.backend = func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		_ = a.Head(200, sse.Clone())
		for range 320 {
			for at := 0; at < len(piece); at += 10_007 { // cut through names and characters
				if a.Data(piece[at:min(at+10_007, len(piece))]) != nil {
					return openai.End{Dispatched: openai.DispatchedYes, Code: "answer_failed"}
				}
			}
		}
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
	var streams sync.WaitGroup
	for range 30 {
		streams.Go(func() {
			if r := e.chat(streamed); r.err != nil || r.body != want {
				t.Errorf("%d bytes, %v", len(r.body), r.err)
			}
		})
	}
	for range 50 {
		if r := e.do("GET", "/readyz", ""); r.StatusCode != 200 {
			t.Error(r.StatusCode)
		}
	}
	streams.Wait()
}

// Fault: the last usage chunk with empty choices counted twice, cumulative counts added up, an explicit zero lost.
func TestUsageIsCountedOnce(t *testing.T) {
	e := newEdge(t, func(_ *openai.Options, v *openai.View) {
		v.Tokens = []openai.Token{{Ref: "app-a", SHA256: sha("tok"), Principal: "team-1"}}
	})
	e.backend = answerAs("text/event-stream", 200,
		"data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1}}\n\n",
		"data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\ndata: {\"choices\":[],\"usa",
		"ge\":{\"prompt_tokens\":10,\"completion_tokens\":2,\"total_tokens\":12}}\n\ndata: [DONE]\n\n")
	e.chat(streamed, "Authorization", "Bearer tok")
	e.backend = answerJSON(200, `{"usage":{"prompt_tokens":5,"completion_tokens":0}}`)
	e.chat(hello, "X-Api-Key", "tok")
	labels := `{model="ornith:35b",principal_ref="team-1",provider="p1",token_ref="app-a"}`
	waitFor(t, "both are counted", func() bool {
		return strings.Contains(e.scraped(), "iop_tokens_in_total"+labels+" 15\n") && strings.Contains(e.scraped(), "iop_tokens_out_total"+labels+" 2\n")
	})
}
