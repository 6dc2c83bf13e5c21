package adapter_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"iop/noded/adapter"
)

// discard is an Answer that only counts.
type discard struct{ bytes int }

func (d *discard) Head(int, http.Header) error { return nil }
func (d *discard) Data(p []byte) error         { d.bytes += len(p); return nil }

// caller does one call and returns how many bytes of body came.
type caller func(ctx context.Context, body []byte) (int, error)

func viaAdapter(b *testing.B, base string) caller {
	o := newOpenAI(b, adapter.OpenAIConfig{BaseURL: base})
	return func(ctx context.Context, body []byte) (int, error) {
		var d discard
		c := adapter.Call{Method: http.MethodPost, Path: "/v1/chat/completions", Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
		if end := o.Do(ctx, &c, &d); end.Code != "" {
			return 0, fmt.Errorf("%s: %s", end.Code, end.Message)
		}
		return d.bytes, nil
	}
}

func viaTransport(b *testing.B, base string) caller {
	t := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	buffers := sync.Pool{New: func() any { return make([]byte, 32<<10) }}
	return func(ctx context.Context, body []byte) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := t.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		buf := buffers.Get().([]byte)
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, buf)
		buffers.Put(buf) //nolint:staticcheck // a header's worth of allocation does not matter here
		_ = resp.Body.Close()
		return int(n), err
	}
}

// BenchmarkClient compares the lean client with http.Transport on the same raw backend: plain answers, and streams of
// 64 chunks, each written for itself.
func BenchmarkClient(b *testing.B) {
	plain := []byte(withLength(string(make([]byte, 400))))
	head := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	frame := []byte("7d\r\ndata: " + string(bytes.Repeat([]byte("x"), 117)) + "\n\n\r\n")
	backends := map[string]func(w io.Writer){
		"plain": func(w io.Writer) { _, _ = w.Write(plain) },
		"stream": func(w io.Writer) {
			_, _ = w.Write(head)
			for range 64 {
				_, _ = w.Write(frame)
			}
			_, _ = w.Write([]byte("0\r\n\r\n"))
		},
	}
	for _, kind := range []string{"plain", "stream"} {
		for _, clients := range []int{1, 64} {
			for _, via := range []struct {
				name string
				make func(*testing.B, string) caller
			}{{"adapter", viaAdapter}, {"transport", viaTransport}} {
				b.Run(fmt.Sprintf("%s/clients=%d/%s", kind, clients, via.name), func(b *testing.B) {
					backend := newRawBackend(b, func(c *rawConn) {
						for c.request() != nil {
							backends[kind](c)
						}
					})
					benchmarkCaller(b, via.make(b, backend.url()), clients)
				})
			}
		}
	}
}

func benchmarkCaller(b *testing.B, call caller, clients int) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("y"), 500)) + `"}]}`)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.SetParallelism(max(clients/2, 1))
	if clients == 1 {
		for b.Loop() {
			if _, err := call(ctx, body); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := call(ctx, body); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
