package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

const (
	adminToken = "admin-token-0123456789"
	viewToken  = "view-token-0123456789"
)

// everything is all that an edge can have.
func everything(w *world, log io.Writer) func(*admin.Options) {
	report := &adminapi.RefreshReport{Result: adminapi.RefreshApplied, Revision: 8}
	return func(o *admin.Options) {
		o.Drain = func(context.Context, *fsm.Drain) (bool, error) { return true, nil }
		o.Evict = func(context.Context, fsm.RequestID) (fsm.Outcome, error) { return fsm.Outcome{Code: fsm.Removed}, nil }
		o.Cluster = &replicas{}
		o.Refresh = func(context.Context, adminapi.RefreshRequest) (*adminapi.RefreshReport, error) { return report, nil }
		o.AddNode = func(context.Context, adminapi.NodeRequest) (*adminapi.RefreshReport, error) { return report, nil }
		o.AddJoin = func(context.Context, adminapi.JoinRequest) (*adminapi.JoinOffer, error) {
			return &adminapi.JoinOffer{}, nil
		}
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "iop_up 1\n") })
		o.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", "page")
			_, _ = io.WriteString(w, "the page\n")
		})
		o.Token, o.ViewToken = adminToken, viewToken
		o.Logger = slog.New(slog.NewJSONHandler(log, nil))
	}
}

// deeds are one call of each route that changes something. A route that is not here fails the test below.
var deeds = map[string]struct{ path, body string }{
	"POST /cluster/members":        {"/cluster/members", `{"id":"edge-2","address":"h:1"}`},
	"DELETE /cluster/members/{id}": {"/cluster/members/edge-2", ""},
	"POST /cluster/transfer":       {"/cluster/transfer", `{}`},
	"POST /cluster/verify":         {"/cluster/verify", ""}, // changes nothing: no line when it is done
	"POST /drain":                  {"/drain", `{"node":"studio","on":true}`},
	"POST /nodes":                  {"/nodes?id=n7", ""},
	"POST /nodes/{id}/join":        {"/nodes/n7/join", "{}"},
	"POST /queue/{id}/cancel":      {"/queue/r-4/cancel", ""},
	"POST /refresh":                {"/refresh", "x"},
}

// send makes a call over the server's socket.
func send(t *testing.T, s *httptest.Server, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r := newRequest(t, method, s.URL+path, header...)
	r.Body = io.NopCloser(strings.NewReader(body))
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// Every route that changes something, whichever will be, is closed to those who may only look, to strangers and to pages of
// others, and is one line of the log each time.
func TestEveryRouteThatChangesSomething(t *testing.T) {
	for _, route := range admin.Changes(func() (o admin.Options) { everything(nil, io.Discard)(&o); return o }()) {
		name := route[0] + " " + route[1]
		t.Run(name, func(t *testing.T) {
			call, ok := deeds[name]
			if !ok {
				t.Fatal("give an example of it in deeds")
			}
			w, log := busy(t), &journal{}
			s := serve(t, w, everything(w, log))
			own := "http://" + s.Listener.Addr().String()
			for _, c := range []struct {
				who    string
				header []string
				status int
				result string
			}{
				{"admin", []string{"Authorization", "Bearer " + adminToken}, 200, "done"},
				{"the page, with the admin token", []string{"Authorization", "Bearer " + adminToken, "Origin", own, "Sec-Fetch-Site", "same-origin"}, 200, "done"},
				{"a viewer", []string{"Authorization", "Bearer " + viewToken}, 403, "read_only"},
				{"the page, with the view token", []string{"Authorization", "Bearer " + viewToken, "Origin", own}, 403, "read_only"},
				{"nobody", nil, 401, "unauthorized"},
				{"the page, without a token", []string{"Origin", own}, 401, "unauthorized"},
				{"a guesser", []string{"Authorization", "Bearer wrong"}, 401, "unauthorized"},
				{"another page", []string{"Authorization", "Bearer " + adminToken, "Origin", "https://evil.example"}, 403, "forbidden_origin"},
				{"a sandboxed page", []string{"Origin", "null"}, 403, "forbidden_origin"},
				{"a page on another port", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403, "forbidden_origin"},
				{"a rebound name", []string{"Host", "evil.example", "Origin", "http://evil.example", "Authorization", "Bearer " + adminToken}, 403, "forbidden_host"},
			} {
				log.take(t)
				res, text := send(t, s, route[0], call.path, call.body, c.header...)
				if res.StatusCode != c.status {
					t.Errorf("%s: %d %s", c.who, res.StatusCode, text)
				}
				var lines []map[string]any
				for _, l := range log.take(t) {
					if strings.HasSuffix(l["msg"].(string), "changed by an operator") {
						lines = append(lines, l)
					}
				}
				if name == "POST /cluster/verify" && c.status == 200 {
					if len(lines) != 0 {
						t.Errorf("%s: %v", c.who, lines)
					}
					continue
				}
				if len(lines) != 1 || lines[0]["result"] != c.result || (lines[0]["level"] == "INFO") != (c.status == 200) || lines[0]["from"] == "" ||
					c.status != 403 && lines[0]["what"] == "" {
					t.Errorf("%s: lines %v", c.who, lines)
				}
				if strings.Contains(fmt.Sprint(lines), adminToken) || strings.Contains(fmt.Sprint(lines), viewToken) {
					t.Errorf("%s: a token is in the log", c.who)
				}
			}
		})
	}
}

// Without a configured token, programs on this machine may do everything and pages nothing, though they come from here.
func TestPagesChangeNothingWithoutAToken(t *testing.T) {
	w, log := busy(t), &journal{}
	s := serve(t, w, func(o *admin.Options) { everything(w, log)(o); o.Token, o.ViewToken = "", "" })
	own := "http://" + s.Listener.Addr().String()
	for name, call := range deeds {
		method, _, _ := strings.Cut(name, " ")
		for _, header := range [][]string{{"Origin", own}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", own, "Authorization", "Bearer made-up"}} {
			if res, text := send(t, s, method, call.path, call.body, header...); res.StatusCode != 403 || !strings.Contains(text, "token_needed") || !strings.Contains(text, "edge.admin.token") {
				t.Errorf("%s of a page with %v: %d %s", name, header, res.StatusCode, text)
			}
		}
		if res, text := send(t, s, method, call.path, call.body); res.StatusCode != 200 {
			t.Errorf("%s of a program: %d %s", name, res.StatusCode, text)
		}
	}
}

// The view token opens all that can be read, the state of the whole cluster as a file apart.
func TestViewTokenReads(t *testing.T) {
	w := busy(t)
	s := serve(t, w, everything(w, io.Discard))
	for path, want := range map[string]int{
		"/status": 200, "/providers": 200, "/nodes": 200, "/leases": 200, "/queue": 200, "/usage": 200, "/pulse": 200, "/config": 200,
		"/config/history": 200, "/cluster": 200, "/metrics": 200, "/requests/r-4": 200, "/cluster/backup": 403, "/refresh": 405,
	} {
		if res, text := send(t, s, "GET", path, "", "Authorization", "Bearer "+viewToken); res.StatusCode != want {
			t.Errorf("%s: %d %.200s", path, res.StatusCode, text)
		}
		if res, _ := send(t, s, "GET", path, ""); res.StatusCode != 401 {
			t.Errorf("%s without a token: %d", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/", "/ui/main.js", "/healthz"} {
		if res, _ := send(t, s, "GET", path, ""); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/ui/../status", "/ui/%2e%2e/status", "//status", "/ui", "/index.html"} {
		res, text := send(t, s, "GET", path, "")
		if strings.Contains(text, "applied_index") || res.StatusCode == 200 && !strings.Contains(text, "the page") {
			t.Errorf("%s without a token: %d %.200s", path, res.StatusCode, text)
		}
	}
}

// What a viewer is told that it may do.
func TestActionsOfAViewer(t *testing.T) {
	w := busy(t)
	locked := serve(t, w, everything(w, io.Discard))
	open := serve(t, w, nil)
	for _, c := range []struct {
		s      *httptest.Server
		header []string
		want   string
	}{
		{locked, []string{"Authorization", "Bearer " + adminToken, "Sec-Fetch-Site", "same-origin"}, adminapi.ActionsAllowed},
		{locked, []string{"Authorization", "Bearer " + viewToken}, adminapi.ActionsReadOnly},
		{open, nil, adminapi.ActionsAllowed},
		{open, []string{"Sec-Fetch-Site", "same-origin"}, adminapi.ActionsTokenNeeded},
		{open, []string{"User-Agent", "Mozilla/5.0 (X11)"}, adminapi.ActionsTokenNeeded},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := c.s.Client().Do(newRequest(t, "GET", c.s.URL+"/live", c.header...).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 600)
		if _, err := io.ReadFull(res.Body, head); err != nil || !bytes.Contains(head, []byte(`"actions":"`+c.want+`"`)) {
			t.Errorf("%v: %v %s", c.header, err, head)
		}
		cancel()
		_ = res.Body.Close()
	}
}

// All answers, refusals too, tell the browser to keep, frame and guess nothing.
func TestSecurityHeaders(t *testing.T) {
	w := busy(t)
	s := serve(t, w, everything(w, io.Discard))
	for _, path := range []string{"/status", "/nothing", "/healthz", "/metrics", "/", "/cluster/backup"} {
		for _, auth := range []string{"", "Bearer " + adminToken} {
			res, _ := send(t, s, "GET", path, "", "Authorization", auth)
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
				"Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %s is %q", path, name, got)
				}
			}
			if !strings.Contains(res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
				t.Errorf("%s: policy %q", path, res.Header.Get("Content-Security-Policy"))
			}
			if res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s lets other origins read", path)
			}
		}
	}
}

// Who tries tokens has them refused unheard for a while, and the log has one line of it, without the token.
func TestWrongTokensAreBraked(t *testing.T) {
	w, log := busy(t), &journal{}
	s := serve(t, w, everything(w, log))
	braked := false
	for range 30 {
		res, text := send(t, s, "GET", "/status", "", "Authorization", "Bearer guess-guess-guess")
		if res.StatusCode == 429 {
			braked = strings.Contains(text, "too_many_tries") && res.Header.Get("Retry-After") != ""
			break
		}
	}
	if !braked {
		t.Error("30 wrong tokens are all looked at")
	}
	if res, _ := send(t, s, "GET", "/healthz", ""); res.StatusCode != 200 {
		t.Errorf("who shows no token tries none: %d", res.StatusCode)
	}
	lines := log.take(t)
	if len(lines) != 1 || lines[0]["level"] != "WARN" || strings.Contains(fmt.Sprint(lines), "guess") {
		t.Errorf("log %v", lines)
	}
}

// Whoever reaches the listener can have its address braked, and may share it with the operator (a NAT, a proxy, this machine):
// that locks nobody out who shows a right token. Only one that could be found by trying waits like a wrong one.
func TestStrangerCannotLockTheOperatorOut(t *testing.T) {
	w := busy(t)
	for _, c := range []struct {
		admin, view string
		want        int
	}{{adminToken, viewToken, 200}, {"short-admin", "short-view", 429}} {
		s := serve(t, w, func(o *admin.Options) {
			everything(w, io.Discard)(o)
			o.Token, o.ViewToken = c.admin, c.view
		})
		for range 30 {
			send(t, s, "GET", "/status", "", "Authorization", "Bearer guess-guess-guess")
		}
		if res, _ := send(t, s, "GET", "/status", "", "Authorization", "Bearer guess-guess-guess"); res.StatusCode != 429 {
			t.Errorf("a wrong token is looked at: %d", res.StatusCode)
		}
		for _, token := range []string{c.admin, c.view} {
			if res, _ := send(t, s, "GET", "/status", "", "Authorization", "Bearer "+token); res.StatusCode != c.want {
				t.Errorf("%s: %d, want %d", token, res.StatusCode, c.want)
			}
		}
		if res, _ := send(t, s, "POST", "/drain", `{"node":"studio","on":true}`, "Authorization", "Bearer "+c.admin); res.StatusCode != c.want {
			t.Errorf("a change: %d, want %d", res.StatusCode, c.want)
		}
	}
}

// No spelling of a path and no method opens what the token table closes.
func TestPathsAndMethodsAroundTheTable(t *testing.T) {
	w := busy(t)
	s := serve(t, w, everything(w, io.Discard))
	secret := []string{"/cluster/backup", "/status", "/config", "/queue", "/drain", "/refresh", "/debug/goroutines", "/live", "/metrics", "/nodes"}
	for _, path := range secret {
		for _, spelled := range []string{
			path, "/" + path, path + "/", "/ui/.." + path, "/ui/%2e%2e" + path, "/./" + path[1:], "/healthz/.." + path, "/healthz/%2e%2e" + path,
			"/%2f" + path[1:], strings.ToUpper(path), path + "%00", path + ";x", path + "?x=/ui/", "/ui" + path, "/healthz" + path,
		} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "CONNECT", "PROPFIND"} {
				for _, auth := range []string{"", "Bearer " + viewToken} {
					code, tag, body := raw(t, s, method, spelled, auth)
					served := code == 200 && tag != "page"
					if auth == "" && served {
						t.Errorf("%s %s without a token: %d %.80s", method, spelled, code, body)
					}
					if auth != "" && served && (!(method == "GET" || method == "HEAD") || strings.Contains(body, "iopback1")) {
						t.Errorf("%s %s with the view token: %d %.80s", method, spelled, code, body)
					}
				}
			}
		}
	}
}

// raw sends a call as it is written, with headers that proxies and frameworks know, and gives the status, the
// ETag and the beginning of the body.
func raw(t *testing.T, s *httptest.Server, method, target, auth string) (status int, tag, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n"+
		"X-HTTP-Method-Override: GET\r\nX-Original-URL: /healthz\r\nX-Rewrite-URL: /healthz\r\nX-Forwarded-For: 127.0.0.1\r\n", method, target)
	if auth != "" {
		_, _ = fmt.Fprintf(conn, "Authorization: %s\r\n", auth)
	}
	_, _ = io.WriteString(conn, "\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	head := make([]byte, 200)
	n, _ := io.ReadAtLeast(res.Body, head, 1) // a stream goes on
	return res.StatusCode, res.Header.Get("ETag"), string(head[:n])
}

// A caller that takes nothing of a large answer is cut off.
func TestCallerThatTakesNothingIsCutOff(t *testing.T) {
	w := busy(t)
	over := make(chan error, 1)
	s := serve(t, w, everything(w, io.Discard))
	s.Config.Handler = admin.NewImpatient(admin.Options{
		Source: w, Edge: "edge-1", Address: s.Listener.Addr().String(),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 64<<20)) // more than sockets keep
			over <- err
		}),
	}, 100*time.Millisecond)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-over; err == nil {
		t.Error("64 MiB were taken by nobody")
	}
}

func TestBrakeForgives(t *testing.T) {
	var b admin.Brake
	now := time.Unix(1_800_000_000, 0)
	for i := range 9 {
		if first, wait := b.Wrong("10.0.0.1:1000", now); first != (i == 0) || wait != 0 {
			t.Errorf("try %d: first %v, wait %v", i, first, wait)
		}
	}
	if _, wait := b.Wrong("10.0.0.1:2000", now); wait != 3*time.Second {
		t.Errorf("the tenth: wait %v", wait)
	}
	if wait := b.Wait("10.0.0.2:1000", now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	if wait := b.Wait("10.0.0.1:1000", now.Add(3*time.Second)); wait != 0 {
		t.Errorf("3 s later: wait %v", wait)
	}
	if first, _ := b.Wrong("10.0.0.1:1000", now.Add(time.Hour)); !first {
		t.Error("an hour later it is the same burst")
	}
	for i := range 9 {
		b.Wrong(fmt.Sprintf("[2001:db8::%d]:1", i), now)
	}
	if _, wait := b.Wrong("[2001:db8::ffff]:1", now); wait == 0 {
		t.Error("who has a network of addresses is not braked")
	}
	for i := range 3 * admin.BrakeMax {
		b.Wrong(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), now)
	}
	if n := b.Size(); n > admin.BrakeMax {
		t.Errorf("%d addresses are kept", n)
	}
}

// Beyond loopback: a token, over TLS, under any name.
func TestTokenOverTLS(t *testing.T) {
	w := busy(t)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: admin.New(func() (o admin.Options) {
		everything(w, io.Discard)(&o)
		o.Source, o.Edge, o.Address = w, "edge-1", l.Addr().String()
		return o
	}()), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}}
	s.StartTLS()
	defer s.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}}
	defer transport.CloseIdleConnections()
	for token, want := range map[string]int{adminToken: 200, viewToken: 200, "wrong": 401, "": 401} {
		r := newRequest(t, "GET", "https://127.0.0.1:"+port+"/status", "Host", "gateway.lan")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%q: %d", token, res.StatusCode)
		}
	}
	if _, err := (&http.Transport{TLSClientConfig: &tls.Config{}}).RoundTrip(newRequest(t, "GET", "https://127.0.0.1:"+port+"/status")); err == nil {
		t.Error("a certificate that nobody vouches for is taken")
	}
}
