package adapter_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"iop/noded/adapter"
)

// refusingAddress is an address that nobody listens on.
func refusingAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it held the port long enough
	return l.Addr().String()
}

func TestWithoutAConnectionNothingWasDispatched(t *testing.T) {
	plain := newRawBackend(t, func(c *rawConn) { c.write("no TLS here\r\n"); c.untilGone() })
	trusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(trusted.Close)
	for name, base := range map[string]string{
		"refused":         "http://" + refusingAddress(t),
		"no such name":    "http://no-such-host.invalid",
		"no TLS there":    strings.Replace(plain.url(), "http:", "https:", 1),
		"unknown issuer":  trusted.URL,
		"refused for TLS": "https://" + refusingAddress(t),
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: base, APIKey: "geheim"})
			r, end := do(t.Context(), o, post("{}"))
			wantEnd(t, end, adapter.DispatchedNo, adapter.CodeConnectFailed)
			if r.status != 0 || end.Message == "" || strings.Contains(end.Message, "geheim") {
				t.Errorf("status %d, message %q", r.status, end.Message)
			}
			if err := o.Probe(t.Context(), ""); err == nil {
				t.Error("a probe found it well")
			}
		})
	}
}

func TestTLSIsSpokenAsHTTP1(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: s.URL, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	for range 20 {
		r, end := do(t.Context(), o, post(strings.Repeat("x", 100<<10)))
		wantEnd(t, end, adapter.DispatchedYes, "")
		if r.body.String() != "HTTP/1.1" {
			t.Fatalf("spoke %q", r.body.String())
		}
	}
	if err := o.Probe(t.Context(), "/health"); err != nil {
		t.Errorf("probe: %v", err)
	}
}

func TestAConnectionThatTheBackendClosedWhileIdleIsReplacedBeforeUse(t *testing.T) {
	closed := make(chan struct{})
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write(withLength("ok"))
		_ = c.Close()
		closed <- struct{}{}
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	for range 50 {
		_, end := do(t.Context(), o, post("{}"))
		wantEnd(t, end, adapter.DispatchedYes, "")
		<-closed
	}
	if n := b.accepted.Load(); n != 50 {
		t.Errorf("%d connections for 50 calls", n)
	}
}

// The close comes when the request has been written already: nobody can tell whether the backend began to run it.
func TestAConnectionThatTheBackendClosesOnReuseIsNotTriedAgain(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) {
		if c.request() == nil {
			return
		}
		c.write(withLength("ok"))
		c.request()
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	_, end := do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
	_, end = do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedUnknown, adapter.CodeBackendBroke)
	if n := b.accepted.Load(); n != 1 {
		t.Errorf("the request was sent again: %d connections", n)
	}
	_, end = do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
}

func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	gone := make(chan int, 10)
	b := newRawBackend(t, func(c *rawConn) {
		always(withLength("ok"))(c)
		gone <- c.n
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url(), IdleTimeout: 20 * time.Millisecond})
	for n := 1; n <= 3; n++ {
		_, end := do(t.Context(), o, post("{}"))
		wantEnd(t, end, adapter.DispatchedYes, "")
		if got := <-gone; got != n {
			t.Fatalf("connection %d was closed, want %d", got, n)
		}
	}
}

func TestCloseClosesIdleConnectionsAndThoseOfRunningCallsAtTheirEnd(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	gone := make(chan int, 2)
	b := newRawBackend(t, func(c *rawConn) {
		for r := c.request(); r != nil; r = c.request() {
			if r.URL.Path == "/v1/slow" {
				close(running)
				<-release
			}
			c.write(withLength("ok"))
		}
		gone <- c.n
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	ended := make(chan adapter.End)
	go func() {
		slow := post("{}")
		slow.Path = "/v1/slow"
		_, end := do(context.WithoutCancel(t.Context()), o, slow)
		ended <- end
	}()
	<-running
	_, end := do(t.Context(), o, post("{}"))
	wantEnd(t, end, adapter.DispatchedYes, "")
	o.Close()
	if n := <-gone; n != 2 {
		t.Fatalf("connection %d was closed first, want the idle one", n)
	}
	close(release)
	wantEnd(t, <-ended, adapter.DispatchedYes, "")
	<-gone
}

func TestTheLatestUsedConnectionIsUsedFirst(t *testing.T) {
	here, one := make(chan struct{}, 2), make(chan struct{})
	b := newRawBackend(t, func(c *rawConn) {
		for r := c.request(); r != nil; r = c.request() {
			if r.URL.Path == "/v1/together" {
				here <- struct{}{}
				<-one
			}
			c.write(withLength(string(rune('0' + c.n))))
		}
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	ended := make(chan string)
	for range 2 {
		go func() {
			c := post("{}")
			c.Path = "/v1/together"
			r, _ := do(t.Context(), o, c)
			ended <- r.body.String()
		}()
	}
	<-here
	<-here
	one <- struct{}{} // one after the other, so that it is known which is put back last
	<-ended
	one <- struct{}{}
	last := <-ended
	for range 20 {
		if r, _ := do(t.Context(), o, post("{}")); r.body.String() != last {
			t.Fatalf("connection %s served, want %s", r.body.String(), last)
		}
	}
	if n := b.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestProbeWantsAnAnswerOf2xx(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) {
		for r := c.request(); r != nil; r = c.request() {
			if r.Method == "GET" && r.URL.Path == "/health" && r.Header.Get("Authorization") == "Bearer k" {
				c.write(withLength("{}"))
			}
			c.write("HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n")
		}
	})
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url() + "/v1", APIKey: "k"})
	if err := o.Probe(t.Context(), "/health"); err != nil {
		t.Errorf("GET /health: %v", err)
	}
	if err := o.Probe(t.Context(), ""); err != nil {
		t.Errorf("connect: %v", err)
	}
	if err := o.Probe(t.Context(), "/other"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("GET /other: %v, want the status 503 in it", err)
	}
}

func TestAProbeOfABackendThatHangsEndsWithItsContext(t *testing.T) {
	b := newRawBackend(t, func(c *rawConn) { c.untilGone() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()}).Probe(ctx, "/health"); err == nil {
		t.Error("a backend that never answers was found well")
	}
}
