package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"iop/edged/openai"
	"iop/fsm"
)

// instant grants everything at once and answers from memory: what is left is this package's own cost.
type instant struct {
	events bool
	chunks int
}

func (instant) RetryAfter() time.Duration { return time.Second }

func (instant) Run(ctx context.Context, q openai.Request, c openai.Caller) error {
	c.Dispatch(ctx, fsm.Grant{Lease: 12345, Model: q.Model, Provider: "p1", Node: "n1", Served: "served-name"}, 0)
	return nil
}

var (
	benchAnswer = []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"served-name","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there, how can I help?"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21}}`)
	benchChunk  = []byte("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"served-name\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" hello\"},\"finish_reason\":null}]}\n\n")
	benchBody   = []byte(`{"model":"ornith:35b","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"Tell me a story about a fox."}],"temperature":0.2}`)
)

func (b instant) Exchange(_ context.Context, _ *openai.Exchange, a openai.Answer) openai.End {
	kind := "application/json"
	if b.events {
		kind = "text/event-stream"
	}
	_ = a.Head(200, http.Header{"Content-Type": {kind}, "Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}})
	if !b.events {
		_ = a.Data(benchAnswer)
	}
	for range b.chunks {
		_ = a.Data(benchChunk)
		_ = a.Flush()
	}
	return openai.End{Dispatched: openai.DispatchedYes, Complete: true}
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) FlushError() error           { return nil }

func benchServer(b *testing.B, i instant) *openai.Server {
	s := openai.New(openai.Options{Runner: i, Backend: i})
	if err := s.Swap(view()); err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkHandler(b *testing.B) {
	for _, i := range []instant{{}, {events: true, chunks: 64}} {
		b.Run(fmt.Sprint("chunks=", i.chunks), func(b *testing.B) {
			s := benchServer(b, i)
			w := &discard{}
			b.ReportAllocs()
			for b.Loop() {
				w.h = make(http.Header, 12)
				r := &http.Request{
					Method: "POST", RequestURI: "/v1/chat/completions", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(benchBody)),
					Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(benchBody)),
				}
				r.URL = benchURL
				s.ServeHTTP(w, r)
			}
		})
	}
}

var benchURL = &url.URL{Path: "/v1/chat/completions"}

// BenchmarkSockets measures requests of 64 raw clients beside a handler that only reads and answers.
func BenchmarkSockets(b *testing.B) {
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(benchAnswer)))
		_, _ = w.Write(benchAnswer)
	})
	b.Run("plain", func(b *testing.B) { benchSockets(b, &http.Server{Handler: plain}) })
	b.Run("iop", func(b *testing.B) { benchSockets(b, benchServer(b, instant{}).HTTP()) })
}

func benchSockets(b *testing.B, hs *http.Server) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = hs.Serve(l) }()
	defer func() { _ = hs.Close() }()
	raw := []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer x\r\nUser-Agent: bench\r\nContent-Length: " +
		fmt.Sprint(len(benchBody)) + "\r\n\r\n" + string(benchBody))
	var wg sync.WaitGroup
	work := make(chan struct{}, 64)
	for range 64 {
		wg.Go(func() {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			buf := make([]byte, 4096)
			for range work {
				_, _ = c.Write(raw)
				for n := 0; ; {
					m, err := c.Read(buf[n:])
					if err != nil {
						b.Error(err)
						return
					}
					if n += m; strings.HasSuffix(string(buf[:n]), "21}}") {
						break
					}
				}
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}
