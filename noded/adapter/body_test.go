package adapter_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"iop/noded/adapter"
)

func TestABodyOf20MiBPassesBothWays(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: s.URL})
	big := make([]byte, 20<<20)
	for i := range big {
		big[i] = byte(i * 31 >> 3)
	}
	for range 2 {
		r, end := do(t.Context(), o, post(string(big)))
		wantEnd(t, end, adapter.DispatchedYes, "")
		if r.status != 200 || !bytes.Equal(r.body.Bytes(), big) {
			t.Fatalf("status %d, %d bytes came back", r.status, r.body.Len())
		}
	}
}

// A backend may refuse a large request without reading it. Its answer gets through, whether it then closes or waits.
func TestAnAnswerThatComesBeforeTheRequestIsReadGetsThrough(t *testing.T) {
	for name, closes := range map[string]bool{"and waits": false, "and says close": true} {
		t.Run(name, func(t *testing.T) {
			b := newRawBackend(t, func(c *rawConn) {
				if _, err := http.ReadRequest(c.r); err != nil {
					return
				}
				extra := ""
				if closes {
					extra = "Connection: close\r\n"
				}
				c.write("HTTP/1.1 413 Too Large\r\n" + extra + "Content-Length: 3\r\n\r\nbig")
				<-t.Context().Done()
			})
			r, end := do(t.Context(), newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}), post(string(make([]byte, 32<<20))))
			wantEnd(t, end, adapter.DispatchedYes, "")
			if r.status != 413 || r.body.String() != "big" {
				t.Fatalf("status %d, body %q", r.status, r.body.String())
			}
		})
	}
}

// streamServer answers with chunks of random sizes; the seed in the request's body says which.
func streamServer(t testing.TB) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seed, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		for _, piece := range streamOf(string(seed)) {
			_, _ = w.Write(piece)
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// streamOf gives the pieces that belong to a seed.
func streamOf(seed string) [][]byte {
	rnd := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed))))
	pieces := make([][]byte, 1+rnd.IntN(12))
	for i := range pieces {
		pieces[i] = fmt.Appendf(nil, "data: {\"seed\":%q,\"n\":%d,\"pad\":\"%0*d\"}\n\n", seed, i, 1+rnd.IntN(400), 0)
	}
	return pieces
}

func TestThreeThousandStreamsArriveByteForByte(t *testing.T) {
	const streams = 3000
	for name, workers := range map[string]int{"one after the other": 1, "64 at a time": 64} {
		t.Run(name, func(t *testing.T) {
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: streamServer(t).URL})
			numbers := make(chan int)
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for n := range numbers {
						seed := fmt.Sprintf("%s %d", name, n)
						r, end := do(t.Context(), o, post(seed))
						want := bytes.Join(streamOf(seed), nil)
						if end.Code != "" || end.Dispatched != adapter.DispatchedYes || !bytes.Equal(r.body.Bytes(), want) {
							t.Errorf("stream %d: end %+v, %d bytes, want %d", n, end, r.body.Len(), len(want))
						}
					}
				})
			}
			for n := range streams {
				numbers <- n
			}
			close(numbers)
			wg.Wait()
		})
	}
}
