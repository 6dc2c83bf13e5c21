package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestSiege: raw clients of HTTP/1.0 and 1.1 send whole and cut requests, many with the same keys, read a little or
// nothing, and leave by a reset, a half close or a plain close at any moment. In the end no slot, waiter or goroutine is
// left, and the backend never had more than its capacity.
func TestSiege(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Tokens: 10, Pace: time.Millisecond}})
	b.SetFor("huge", backend.Plan{Huge: 4 << 20})
	l := shared(b, 3)
	l.queue, l.log = 300, "info"
	w := newWorld(t, l)
	w.want(200, ask{})
	before := w.metric("go_goroutines")
	r := dice(t)
	var clients sync.WaitGroup
	for range 20 {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		clients.Go(func() {
			for range rounds(15, 100) {
				besiege(w.edge.openai, own)
			}
		})
	}
	clients.Wait()
	w.awaitIdle()
	await(t, "the backend is idle", func() bool { return b.Stats().Current == 0 })
	if s := b.Stats(); s.Violations != 0 {
		t.Errorf("the backend got more than its capacity: %+v", s)
	}
	await(t, "the edge has no goroutine of theirs left", func() bool { return w.metric("go_goroutines") <= before+10 })
	w.want(200, ask{})
}

// besiege is one such client.
func besiege(address string, r *rand.Rand) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	body := fmt.Sprintf(`{"model":"m","user":%q,"stream":%v}`, []string{"small", "small", "huge"}[r.IntN(3)], r.IntN(2) == 0)
	raw := fmt.Sprintf("POST /v1/chat/completions HTTP/1.%d\r\nHost: x\r\nIdempotency-Key: k%d\r\nContent-Length: %d\r\n\r\n%s",
		r.IntN(2), r.IntN(15), len(body), body)
	if r.IntN(5) == 0 {
		raw = raw[:r.IntN(len(raw))]
	}
	_, _ = io.WriteString(c, raw)
	_ = c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(100)) * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c, r.Int64N(9000))
	switch t, _ := c.(*net.TCPConn); r.IntN(3) {
	case 0:
		_ = t.SetLinger(0)
	case 1:
		_ = t.CloseWrite()
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}
