package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask is a client's request.
type ask struct {
	path   string // "" = /v1/chat/completions
	model  string // "" = m
	tag    string // what the backend knows it by
	stream bool
	prompt string      // "" = hello
	key    string      // Idempotency-Key
	token  string      // Bearer
	body   []byte      // the exact body, instead of all above
	header http.Header // more headers
}

func (a *ask) bytes() []byte {
	if a.body != nil {
		return a.body
	}
	m := map[string]any{"model": or(a.model, "m"), "user": a.tag}
	if a.stream {
		m["stream"] = true
	}
	prompt := or(a.prompt, "hello")
	switch {
	case strings.HasSuffix(a.path, "/embeddings"), strings.HasSuffix(a.path, "/responses"):
		m["input"] = prompt
	case strings.HasSuffix(a.path, "/v1/completions"):
		m["prompt"] = prompt
	default:
		m["messages"] = []any{map[string]any{"role": "user", "content": prompt}}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // maps of plain values always marshal
	}
	return b
}

func (a *ask) request(ctx context.Context, address string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+or(a.path, "/v1/chat/completions"), bytes.NewReader(a.bytes()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if a.key != "" {
		r.Header.Set("Idempotency-Key", a.key)
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for k, v := range a.header {
		r.Header[k] = v
	}
	return r, nil
}

// newClient makes a client that never reuses a connection, so that it never sends a request twice by itself.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
}

// call sends a request and reads the whole answer.
func call(ctx context.Context, address string, a ask) answer {
	out := answer{tag: a.tag}
	r, err := a.request(ctx, address)
	if err != nil {
		out.err = err
		return out
	}
	res, err := newClient().Do(r)
	if err != nil {
		out.err = err
		return out
	}
	defer func() { _ = res.Body.Close() }()
	out.status, out.header = res.StatusCode, res.Header
	out.body, out.err = io.ReadAll(res.Body)
	out.clean = out.err == nil && framed(res)
	return out
}

// framed tells whether an answer's end can be told from a broken one.
func framed(res *http.Response) bool {
	return res.ContentLength >= 0 || len(res.TransferEncoding) > 0 && res.TransferEncoding[0] == "chunked"
}

// ask sends a request and wants an answer.
func (w *world) ask(a ask) answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out := call(ctx, w.edge.openai, a)
	if out.status == 0 {
		w.t.Fatalf("no answer to %s: %v", a.tag, out.err)
	}
	return out
}

// want sends a request and wants a status.
func (w *world) want(status int, a ask) answer {
	w.t.Helper()
	out := w.ask(a)
	out.want(w.t, status)
	return out
}

// flight is a request on its way.
type flight struct {
	ask   ask
	leave context.CancelFunc // the client goes away
	done  chan struct{}
	got   answer
}

// start sends a request in the background; the test's end takes it back.
func (w *world) start(a ask) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{ask: a, leave: cancel, done: make(chan struct{})}
	address := w.edge.openai
	go func() {
		defer close(f.done)
		f.got = call(ctx, address, a)
	}()
	w.t.Cleanup(func() { cancel(); <-f.done })
	return f
}

// wait returns the answer.
func (f *flight) wait(t testing.TB) answer {
	t.Helper()
	select {
	case <-f.done:
		return f.got
	case <-time.After(patience):
		t.Fatalf("no end of %s after %v", f.ask.tag, patience)
		return answer{}
	}
}

// over tells whether the answer is there.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// queue starts a request and waits until it stands in the queue as the n-th.
func (w *world) queue(a ask, n int) *flight {
	w.t.Helper()
	f := w.start(a)
	w.awaitPending(n)
	return f
}
