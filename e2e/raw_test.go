package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestRawRequests: what no well-behaved client sends is refused with the right status, or cut off.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	post := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"oversized headers":   {post + "X-Big: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", 431},
		"no HTTP":             {"hello\r\n\r\n", 400},
		"two lengths":         {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"negative length":     {post + "Content-Length: -1\r\n\r\n", 400},
		"declared too large":  {post + fmt.Sprintf("Content-Length: %d\r\n\r\n{", 1<<40), 413},
		"bad chunk":           {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"GET of a POST route": {"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405},
		"chunked body":        {post + "Transfer-Encoding: chunked\r\n\r\nd;x=y\r\n{\"model\":\"m\"}\r\n0\r\n\r\n", 200},
		"no route":            {"GET /etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404},
	} {
		if got := rawStatus(t, w.edge.openai, c.raw); got != c.status {
			t.Errorf("%s: status %d, want %d", name, got, c.status)
		}
	}
	w.awaitIdle()
	w.want(200, ask{})
	w.awaitIdle()
	w.grants = 2
}

// TestExpectContinue: a client that waits for 100 Continue before it sends its body gets it.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	c, err := net.Dial("tcp", w.edge.openai)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	body := `{"model":"m"}`
	r := bufio.NewReader(c)
	_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, body)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	w.awaitIdle()
}

// TestOneConnectionManyAnswers: after every kind of answer that ends in order, the same connection serves the next.
func TestOneConnectionManyAnswers(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	b.SetFor("fails", backend.Plan{Status: 500})
	b.SetFor("huge", backend.Plan{Huge: 300_000})
	w := newWorld(t, shared(b, 1))
	dials := 0
	client := &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1, DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	defer client.CloseIdleConnections()
	for i := range 40 {
		for _, c := range []struct {
			ask    ask
			status int
		}{
			{ask{tag: "plain"}, 200},
			{ask{tag: "stream", stream: true}, 200},
			{ask{tag: "fails"}, 500},
			{ask{tag: "fails", stream: true}, 500},
			{ask{model: "nobody"}, 404},
			{ask{body: []byte(`{"model":`)}, 400},
			{ask{tag: "huge", stream: i%2 == 0}, 200},
			{ask{path: "/v1/embeddings", tag: "vector"}, 200},
		} {
			r, err := c.ask.request(t.Context(), w.edge.openai)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.StatusCode != c.status {
				t.Fatalf("%+v: %d, %v: %.300s", c.ask, res.StatusCode, err, body)
			}
		}
	}
	if dials != 1 {
		t.Errorf("%d connections for one client", dials)
	}
	w.awaitIdle()
}

// rawStatus sends bytes and returns the status of the answer; 0 = the connection was closed without one.
func rawStatus(t *testing.T, address, raw string) int {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	go func() { _, _ = io.WriteString(c, raw) }() // the other side may stop reading early
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestAByteASecond: clients that dribble headers or a body hold no slot and nobody up.
func TestAByteASecond(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1})
	w := newWorld(t, shared(b, 1))
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
	var slow []net.Conn
	for i := range 60 {
		c, err := net.Dial("tcp", w.edge.openai)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		slow = append(slow, c)
		if i%2 == 0 {
			_, _ = io.WriteString(c, head[:20])
		} else {
			_, _ = io.WriteString(c, head+`{"model":"m",`)
		}
	}
	for i := range 30 {
		for _, c := range slow {
			_, _ = c.Write([]byte{head[20+i%10]})
		}
		w.want(200, ask{tag: fmt.Sprint("quick", i)})
	}
	w.awaitIdle()
	if n := b.Stats().Total; n != 30 {
		t.Errorf("%d runs, want 30", n)
	}
	w.grants = 30
}

// TestDribblersAreCutOff: a connection whose headers never end is closed by the edge.
func TestDribblersAreCutOff(t *testing.T) {
	if !long() {
		t.Skip("waits for a timeout of the edge: E2E_LONG=1")
	}
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	c, err := net.Dial("tcp", w.edge.openai)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, c) }()
	awaitWithin(t, 4*patience, "the edge closes the connection", func() bool {
		select {
		case <-done:
			return true
		default:
			_, _ = io.WriteString(c, "X")
			return false
		}
	})
}
