package wire

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"iop/noded/edgelink"
)

// clients is how many exchanges are in progress at once.
const clients = 64

// BenchmarkPlain is one small request and answer over the wire, no backend and no client beside it.
func BenchmarkPlain(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"message":{"role":"assistant","content":"hello"}}]}`)
	length := []string{strconv.Itoa(len(body))}
	bench(b, clients, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, http.Header{"Content-Type": {"application/json"}, "Content-Length": length, "Date": {"today"}})
		_ = a.Data(body)
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
}

// BenchmarkPlainAlone is the same with one exchange at a time: its time is what the hop adds.
func BenchmarkPlainAlone(b *testing.B) {
	bench(b, 1, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}})
		_ = a.Data([]byte("ok"))
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
}

// BenchmarkStream is 64 pieces per answer, each sent at once.
func BenchmarkStream(b *testing.B) {
	piece := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
	bench(b, clients, func(_ context.Context, _ *edgelink.Run, a edgelink.Answer) edgelink.End {
		_ = a.Head(200, http.Header{"Content-Type": {"text/event-stream"}})
		for range 64 {
			_ = a.Data(piece)
		}
		return edgelink.End{Dispatched: edgelink.DispatchedYes}
	})
}

type discard struct{}

func (discard) Head(int, http.Header) error { return nil }
func (discard) Data([]byte) error           { return nil }
func (discard) Flush() error                { return nil }

func bench(b *testing.B, workers int, run func(context.Context, *edgelink.Run, edgelink.Answer) edgelink.End) {
	w := newWorld(b, run)
	g := w.c.admit(b, "r1")
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithCancel(context.Background()) // as a server's: it can end
			defer cancel()
			x := request(g, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
			x.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"bench"}}
			for left.Add(-1) >= 0 {
				if end := w.e.links.Exchange(ctx, x, discard{}); !end.Complete {
					b.Errorf("%+v", end)
					return
				}
			}
		}()
	}
	for range workers {
		<-done
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
}
