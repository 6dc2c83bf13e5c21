package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestMoreSlotsThanAThousand: a provider may have more slots than a link once had connections; each of them can be used,
// and all of them at once.
func TestMoreSlotsThanAThousand(t *testing.T) {
	t.Parallel()
	const slots = 1100
	b := newBackend(t, backend.Options{Limit: slots, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, slots)
	l.queue, l.log = slots, "info"
	w := newWorld(t, l)
	var flights []*flight
	for i := range slots {
		flights = append(flights, w.start(ask{tag: fmt.Sprint("r", i), stream: i%2 == 0}))
	}
	await(t, "all slots are in use, or somebody was refused", func() bool { return b.Stats().Held == slots || anyOver(flights) })
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	w.awaitIdle()
}

func anyOver(flights []*flight) bool {
	for _, f := range flights {
		if f.over() {
			return true
		}
	}
	return false
}

// TestKilledBackendWithoutFraming: an answer that only its connection ends is not taken for whole when the backend was
// killed, for then the connection ends just the same.
func TestKilledBackendWithoutFraming(t *testing.T) {
	t.Parallel()
	const (
		frame  = `data: {"id":"1","model":"served/p1","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
		stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
		plain  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	)
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	for tag, c := range map[string]struct {
		raw   string
		whole bool
	}{
		"stream, whole":              {stream + frame + "data: [DONE]\n\n", true},
		"stream, cut between events": {stream + frame + frame, false},
		"stream, cut in an event":    {stream + frame + frame[:40], false},
		"plain, whole":               {plain + `{"id":"1","model":"served/p1","choices":[]}`, true},
		"plain, cut":                 {plain + `{"id":"1","model":"served/p1","choices":[{"mess`, false},
	} {
		b.SetFor(tag, backend.Plan{Raw: []byte(c.raw)})
		a := w.ask(ask{tag: tag, stream: strings.HasPrefix(tag, "stream")})
		if (a.status == 200 && a.clean) != c.whole {
			t.Errorf("%s: status %d, clean %v: %q", tag, a.status, a.clean, a.body)
		}
	}
	w.awaitIdle()
}

// TestEdgesOfTwoClusters: a node whose file names edges that do not belong together serves one of them, says what is
// wrong, and does not mix their generations up.
func TestEdgesOfTwoClusters(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Default: backend.Plan{Tokens: 3, Pace: time.Millisecond}})
	one, two := newEdgeOnly(t, shared(b, 2)), newEdgeOnly(t, shared(b, 2))
	file := one.write("node-n1.yaml", nodeFile("n1", nodeToken("n1"), one.edge.node, two.edge.node))
	one.nodes["n1"] = one.track(spawn(t, "noded n1", nil, program(t, "noded"), "--config", file, "--log-level", "debug"))
	await(t, "one edge has the node", func() bool { return one.link("n1")+two.link("n1") > 0 })
	await(t, "the node says what is wrong", func() bool { return one.nodes["n1"].says("different clusters") })
	served := one
	if served.link("n1") == 0 {
		served = two
	}
	for i := range 20 {
		served.want(200, ask{tag: fmt.Sprint("r", i), stream: i%2 == 0})
	}
	if !one.nodes["n1"].running() {
		t.Error("the node has ended")
	}
	served.awaitIdle()
}

// TestClientsHeadersAreNoneOfOurs: fields that mean something between edge and node, or for one connection, don't pass
// from a client, and nothing that it names in Connection does.
func TestClientsHeadersAreNoneOfOurs(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	body := `{"model":"m","user":"evil"}`
	c, err := net.Dial("tcp", w.edge.openai)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprintf(c, "POST /v1/chat/completions?a=%%0d%%0aIop-Run:%%201 HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"+
		"Iop-Run: 99\r\niop-lease: 99\r\nIOP-ADAPTER: none\r\nIop-Generation: 99\r\nIop-Timeout-Ms: 1\r\nIop-Kind: run\r\n"+
		"Connection: keep-alive, X-Private, Iop-Served\r\nX-Private: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n"+
		"Authorization: Bearer gateway-key\r\nX-Api-Key: gateway-key\r\nX-Passes: \xe4\r\n\r\n%s", len(body), body)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	run, _ := b.Run("evil")
	for name, v := range run.Header {
		if strings.HasPrefix(name, "Iop-") || strings.Contains(strings.Join(v, " "), "gateway-key") {
			t.Errorf("the backend got %s: %q", name, v)
		}
	}
	for _, name := range []string{"X-Private", "Keep-Alive", "Te", "Upgrade", "X-Api-Key", "Authorization"} {
		if v := run.Header.Values(name); len(v) > 0 {
			t.Errorf("the backend got %s: %q", name, v)
		}
	}
	if run.Header.Get("X-Passes") != "\xe4" {
		t.Errorf("the backend got X-Passes: %q", run.Header.Get("X-Passes"))
	}
	w.awaitIdle()
}

// TestKilledEdgeAndAnOldClient: a client that speaks HTTP/1.0, as nginx does by default to what is behind it, takes the
// end of its connection for the end of the answer. When the edge is killed in mid-stream it must see a reset; a whole
// stream still ends plainly.
func TestKilledEdgeAndAnOldClient(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	b.SetFor("cut", backend.Plan{Tokens: 4, Hold: backend.AfterTokens, At: 2})
	l := shared(b, 2)
	l.throttled = true
	w := newWorld(t, l)
	stream := func(tag string) (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", w.edge.openai)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		body := `{"model":"m","stream":true,"user":"` + tag + `"}`
		_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return c, bufio.NewReader(c)
	}
	_, in := stream("whole")
	if all, err := io.ReadAll(in); err != nil || !strings.HasSuffix(string(all), "data: [DONE]\n\n") {
		t.Errorf("a whole stream: %v: %q", err, all)
	}
	_, in = stream("cut")
	for line := ""; !strings.HasPrefix(line, "data:"); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	w.edge.kill()
	if all, err := io.ReadAll(in); err == nil {
		t.Errorf("the stream ended as if it were whole: %q", all)
	}
	b.LetAll()
	w.restartEdge()
	w.awaitLink("n1")
	w.awaitIdle()
}
