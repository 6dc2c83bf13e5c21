package e2e

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestThousandDeafWatchers: a thousand watchers of events that never read change neither leases nor order; a thousand
// requests later the edge still answers, and a watcher that reads sees events.
func TestThousandDeafWatchers(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	quiet := timeRequests(t, w, b)
	var watchers []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", w.edge.admin)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := io.WriteString(c, "GET /watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, c)
	}
	// The last one reads a little, so that all are known to be connected: connections are taken in order.
	if _, err := io.ReadFull(watchers[999], make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	twoModelsShareOneSlot(t, w, b, b.Stats().Total)
	watched := timeRequests(t, w, b)
	t.Logf("200 requests took %v unwatched, %v with 1,000 deaf watchers", quiet, watched)
	w.awaitIdle()
}

func timeRequests(t *testing.T, w *world, b *backend.Backend) time.Duration {
	t.Helper()
	b.LetAll()
	defer b.HoldAgain()
	began := time.Now()
	for i := range 200 {
		w.want(200, ask{tag: fmt.Sprint("timed", i)})
	}
	return since(began)
}
