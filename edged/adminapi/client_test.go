package adminapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"iop/edged/adminapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listener answers everything the same way.
func listener(t *testing.T, status int, kind, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Path", r.URL.EscapedPath())
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, timeout time.Duration, addresses ...string) *adminapi.Client {
	t.Helper()
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: addresses, Token: "secret", Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// silentPort accepts and never answers.
func silentPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

const leases = `{"leases":[{"id":7,"request":"r"}]}`

func TestEdgesAreAskedInTurn(t *testing.T) {
	good := listener(t, 200, "application/json", leases)
	broken := listener(t, 503, "application/json", `{"error":{"code":"failed","message":"m","cure":"c"}}`)
	for name, addresses := range map[string][]string{
		"first":             {good.URL, closedPort(t)},
		"after a closed":    {closedPort(t), good.Listener.Addr().String()},
		"after a failed":    {broken.URL, good.URL},
		"after a silent":    {silentPort(t), good.URL},
		"after two of them": {closedPort(t), broken.URL, good.URL + "/"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := client(t, 3*time.Second, addresses...).Leases(t.Context(), adminapi.Moment{})
			if err != nil || len(l.Leases) != 1 || l.Leases[0].ID != 7 {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

// A refusal is an answer: the next edge would say the same.
func TestRefusalEndsTheSearch(t *testing.T) {
	refusing := listener(t, 404, "application/json", `{"error":{"code":"not_found","message":"no lease \"9\"","cure":"list them"}}`)
	good := listener(t, 200, "application/json", `{"id":9}`)
	_, err := client(t, 0, refusing.URL, good.URL).Lease(t.Context(), "9", adminapi.Moment{})
	var e *adminapi.Error
	if !errors.As(err, &e) || e.Code != "not_found" || e.Status != 404 || e.Remedy() != "list them" {
		t.Errorf("%v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	closed, silent := closedPort(t), silentPort(t)
	_, err := client(t, 200*time.Millisecond, closed, silent).Status(t.Context())
	var u *adminapi.UnreachableError
	if !errors.As(err, &u) || len(u.Attempts) != 2 || u.Attempts[0].Address != closed || u.Attempts[1].Address != silent {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{closed, "connection refused", silent, "no answer in time"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
	if !strings.Contains(u.Remedy(), "--edge") {
		t.Errorf("cure %q", u.Remedy())
	}
}

func TestCanceledCallAsksNobodyElse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client(t, 0, closedPort(t), closedPort(t)).Status(ctx)
	var u *adminapi.UnreachableError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &u) || len(u.Attempts) != 1 {
		t.Errorf("%v", err)
	}
}

// Something else on the port: a proxy's page, the OpenAI listener of an edge, a redirect, half an answer.
func TestStrangers(t *testing.T) {
	for name, s := range map[string]*httptest.Server{
		"page":       listener(t, 200, "text/html", "<html>"),
		"openai":     listener(t, 404, "application/json", `{"error":{"message":"no such route","type":"invalid_request_error","code":"not_found"}}`),
		"half":       listener(t, 200, "application/json", `{"leases":[`),
		"bad answer": listener(t, 502, "text/plain", "bad gateway"),
		"redirect":   listener(t, 302, "text/plain", ""),
	} {
		_, err := client(t, 0, s.URL).Leases(t.Context(), adminapi.Moment{})
		var e *adminapi.Error
		if !errors.As(err, &e) || e.Code != "not_admin" || !strings.Contains(e.Message, s.URL) || !strings.Contains(e.Cure, "admin=") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenAndIDs(t *testing.T) {
	var path, auth string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.EscapedPath(), r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	if _, err := client(t, 0, s.URL).Request(t.Context(), "a/b?c d", adminapi.Moment{}); err != nil {
		t.Fatal(err)
	}
	if path != "/requests/a%2Fb%3Fc%20d" || auth != "Bearer secret" {
		t.Errorf("path %q, auth %q", path, auth)
	}
}

func TestAddresses(t *testing.T) {
	for _, a := range []string{"", "http://", "host:", "host:port", "a b:1", "ftp://x:1", "x/y:1", "user@host:1"} {
		if _, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{a}}); err == nil {
			t.Errorf("%q was taken", a)
		}
	}
	for _, a := range []string{"gw", "gw:1", ":9080", "[::1]:9080", "[::1]", "http://gw:1/", "https://gw/iop"} {
		if _, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{a}}); err != nil {
			t.Errorf("%q: %v", a, err)
		}
	}
	if _, err := adminapi.NewClient(adminapi.ClientOptions{}); err == nil {
		t.Error("no address was taken")
	}
}

// TestAddressesAsPeopleWriteThem: what is copied from a URL, and the port alone.
func TestAddressesAsPeopleWriteThem(t *testing.T) {
	for in, want := range map[string]string{
		"gw1:9080": "gw1:9080", "gw1": "gw1:9080", ":9081": "127.0.0.1:9081", "9081": "127.0.0.1:9081", "127.0.0.1:9080/": "127.0.0.1:9080",
		"gw1/": "gw1:9080", "[::1]:9081": "[::1]:9081", "[::1]": "[::1]:9080",
		"": "", "/": "", ":": "", ":x": "", "a b:1": "", "gw1:9080/x": "", "u@gw1": "",
	} {
		if got, err := adminapi.HostPort(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}
