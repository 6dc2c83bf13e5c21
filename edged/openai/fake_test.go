package openai_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/edged/metrics"
	"iop/edged/openai"
	"iop/fsm"
)

// coded is a Runner's error.
type coded string

func (c coded) Error() string { return "refused: " + string(c) }
func (c coded) Code() string  { return string(c) }

// edge is a server with a Runner and a Backend that do what a test says.
type edge struct {
	t       *testing.T
	srv     *openai.Server
	metrics *metrics.Metrics
	addr    string
	cutOff  func() // cancels all requests

	mu       sync.Mutex
	seen     []openai.Request
	sent     []openai.Exchange // with copies of header and body
	reasons  []fsm.Reason
	requeued int
	held     int // leases that are out
	lease    fsm.LeaseID

	// run leads a request through admission; nil = it is granted at once, and refused as unavailable after three requeues.
	run func(ctx context.Context, q openai.Request, c openai.Caller) error
	// backend answers; required.
	backend func(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End
}

func (e *edge) RetryAfter() time.Duration { return 7 * time.Second }

func (e *edge) Run(ctx context.Context, q openai.Request, c openai.Caller) error {
	e.mu.Lock()
	e.seen = append(e.seen, q)
	e.mu.Unlock()
	if e.run != nil {
		return e.run(ctx, q, c)
	}
	for range 3 {
		if !e.dispatch(ctx, q, c) {
			return nil
		}
	}
	return coded("unavailable")
}

// dispatch grants a lease and takes it back.
func (e *edge) dispatch(ctx context.Context, q openai.Request, c openai.Caller) (requeue bool) {
	e.mu.Lock()
	e.held++
	e.lease++
	g := fsm.Grant{
		Lease: e.lease, Request: q.ID, Model: q.Model, Class: q.Class, Provider: "p1", Node: "n1", Generation: 1,
		Served: "served/" + string(q.Model),
	}
	e.mu.Unlock()
	why, requeue := c.Dispatch(ctx, g, 12*time.Millisecond)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held--
	e.reasons = append(e.reasons, why)
	if requeue {
		e.requeued++
	}
	return requeue
}

func (e *edge) Exchange(ctx context.Context, x *openai.Exchange, a openai.Answer) openai.End {
	c := *x
	c.Header, c.Body = x.Header.Clone(), append([]byte(nil), x.Body...)
	e.mu.Lock()
	e.sent = append(e.sent, c)
	e.mu.Unlock()
	return e.backend(ctx, x, prompt{a})
}

// prompt is an answer whose pieces never arrive together.
type prompt struct{ openai.Answer }

func (p prompt) Head(status int, h http.Header) error {
	if err := p.Answer.Head(status, h); err != nil {
		return err
	}
	return p.Flush()
}

func (p prompt) Data(b []byte) error {
	if err := p.Answer.Data(b); err != nil {
		return err
	}
	return p.Flush()
}

func (e *edge) last() openai.Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent[len(e.sent)-1]
}

func (e *edge) lastRequest() openai.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen[len(e.seen)-1]
}

// free waits until no lease is out and returns why the last one came back.
func (e *edge) free() fsm.Reason {
	e.t.Helper()
	for range 1000 {
		e.mu.Lock()
		held, reasons := e.held, e.reasons
		e.mu.Unlock()
		if held == 0 && len(reasons) > 0 {
			return reasons[len(reasons)-1]
		}
		time.Sleep(5 * time.Millisecond)
	}
	e.t.Fatal("a lease is still held")
	return 0
}

func view() *openai.View {
	return &openai.View{
		Models: []openai.Model{
			{ID: "ornith:35b", Created: 1700000000},
			{ID: "org/model:7b", Created: 1700000000, Generation: json.RawMessage(`{"max_tokens":100,"temperature":0.5,"stop":["x"]}`)},
			{ID: "same"},
		},
		Providers:     []openai.Provider{{ID: "p1", Adapter: "a1", OpenAI: true}},
		LongThreshold: 1000, CountTokens: true,
	}
}

// newEdge serves on a socket until the test ends, and then checks that no goroutine and no lease is left.
func newEdge(t *testing.T, change ...func(*openai.Options, *openai.View)) *edge {
	t.Helper()
	before := goleak.IgnoreCurrent()
	e := &edge{t: t, metrics: metrics.New(), backend: answerJSON(200, `{"id":"1","model":"served/ornith:35b"}`)}
	e.metrics.SetNames([]string{"ornith:35b", "org/model:7b", "same"}, []string{"p1"})
	o := openai.Options{Runner: e, Backend: e, Metrics: e.metrics}
	v := view()
	for _, c := range change {
		c(&o, v)
	}
	e.srv = openai.New(o)
	if err := e.srv.Swap(v); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.addr = l.Addr().String()
	hs := e.srv.HTTP()
	requests, cutOff := context.WithCancel(context.Background())
	e.cutOff = cutOff
	hs.BaseContext = func(net.Listener) context.Context { return requests }
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := hs.Shutdown(ctx); err != nil {
			t.Errorf("requests are still running: %v", err)
		}
		<-done
		cutOff()
		e.mu.Lock()
		if e.held != 0 {
			t.Errorf("%d leases are held", e.held)
		}
		e.mu.Unlock()
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, before)
	})
	return e
}

// answerJSON answers whole.
func answerJSON(status int, body string) func(context.Context, *openai.Exchange, openai.Answer) openai.End {
	return answerAs("application/json", status, body)
}

func answerAs(kind string, status int, pieces ...string) func(context.Context, *openai.Exchange, openai.Answer) openai.End {
	return func(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
		n := 0
		for _, p := range pieces {
			n += len(p)
		}
		h := http.Header{"Content-Type": {kind}, "Content-Length": {fmt.Sprint(n)}, "X-Backend": {"yes"}, "Keep-Alive": {"1"}, "Connection": {"X-Drop"}, "X-Drop": {"1"}}
		if err := a.Head(status, h); err != nil {
			return openai.End{Dispatched: openai.DispatchedYes, Code: "answer_failed"}
		}
		for _, p := range pieces {
			if err := a.Data([]byte(p)); err != nil {
				return openai.End{Dispatched: openai.DispatchedYes, Code: "answer_failed"}
			}
		}
		return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
	}
}

// reply is an answer as a client sees it.
type reply struct {
	*http.Response
	body string
	err  error // of reading the body
}

func (r *reply) code() string {
	var e struct {
		Error struct{ Code, Type, Message string } `json:"error"`
	}
	if json.Unmarshal([]byte(r.body), &e) != nil || e.Error.Message == "" || e.Error.Type == "" {
		return "no error shape: " + r.body
	}
	return e.Error.Code
}

func (e *edge) do(method, path, body string, header ...string) *reply {
	e.t.Helper()
	q, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+e.addr+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return &reply{Response: res, body: string(b), err: err}
}

func (e *edge) chat(body string, header ...string) *reply {
	e.t.Helper()
	return e.do("POST", "/v1/chat/completions", body, header...)
}

// dial sends raw bytes and returns the connection.
func (e *edge) dial(raw string) (net.Conn, *bufio.Reader) {
	e.t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, raw); err != nil {
		e.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func post(body string, header ...string) string {
	h := strings.Join(header, "\r\n")
	if h != "" {
		h += "\r\n"
	}
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", h, len(body), body)
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (e *edge) scraped() string {
	var b strings.Builder
	w := &recorder{b: &b}
	q, _ := http.NewRequest("GET", "/metrics", nil)
	e.metrics.Handler().ServeHTTP(w, q)
	return b.String()
}

type recorder struct {
	h http.Header
	b *strings.Builder
}

func (r *recorder) Header() http.Header {
	if r.h == nil {
		r.h = http.Header{}
	}
	return r.h
}
func (r *recorder) Write(p []byte) (int, error) { return r.b.Write(p) }
func (r *recorder) WriteHeader(int)             {}

func wantCode(t *testing.T, r *reply, status int, code string) {
	t.Helper()
	if r.StatusCode != status || r.code() != code {
		t.Errorf("got %d %s, want %d %s", r.StatusCode, r.code(), status, code)
	}
	if r.Header.Get("X-Request-Id") == "" {
		t.Error("no x-request-id")
	}
}

const hello = `{"model":"ornith:35b","messages":[{"role":"user","content":"hi"}]}`
