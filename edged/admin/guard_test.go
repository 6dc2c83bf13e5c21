package admin_test

import (
	"net"
	"net/http"
	"testing"

	"iop/edged/admin"
)

// A name that was made to point at 127.0.0.1 reaches nothing, and neither does a page of another origin.
func TestGuardAgainstForeignPages(t *testing.T) {
	s := serve(t, busy(t), nil)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, c := range []struct {
		name   string
		header []string
		code   string
	}{
		{"plain", nil, ""},
		{"localhost", []string{"Host", "localhost:" + port}, ""},
		{"localhost through a tunnel", []string{"Host", "localhost:9999"}, ""},
		{"IPv6", []string{"Host", "[::1]:" + port}, ""},
		{"IPv6 without port", []string{"Host", "[::1]"}, ""},
		{"rebound name", []string{"Host", "evil.example:" + port}, "forbidden_host"},
		{"name that begins like ours", []string{"Host", "localhost.evil.example"}, "forbidden_host"},
		{"foreign address", []string{"Host", "10.0.0.1:" + port}, "forbidden_host"},
		{"same origin", []string{"Host", "localhost:" + port, "Origin", "http://localhost:" + port}, ""},
		{"other port", []string{"Host", "localhost:" + port, "Origin", "http://localhost:1"}, "forbidden_origin"},
		{"other origin", []string{"Origin", "https://evil.example"}, "forbidden_origin"},
		{"hidden origin", []string{"Origin", "null"}, "forbidden_origin"},
		{"cross-site fetch", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, "forbidden_origin"},
		{"followed link", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, ""},
		{"link to a document", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, ""},
		{"frame of another page", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, "forbidden_origin"},
		{"object of another page", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object"}, "forbidden_origin"},
		{"typed address", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/status", c.header...))
			switch {
			case c.code == "" && e != nil:
				t.Errorf("refused: %d %+v", status, e)
			case c.code != "" && (e == nil || e.Code != c.code || status != http.StatusForbidden):
				t.Errorf("%d %+v, want %s", status, e, c.code)
			}
		})
	}
}

// Beyond loopback people use names of their own.
func TestHostIsFreeBeyondLoopback(t *testing.T) {
	s := serve(t, busy(t), func(o *admin.Options) { o.Address = "0.0.0.0:9080" })
	if status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+"/status", "Host", "gateway.lan:9080")); e != nil {
		t.Errorf("%d %+v", status, e)
	}
}

func TestToken(t *testing.T) {
	for auth, want := range map[string]int{
		"": 401, "Bearer wrong": 401, "Bearer": 401, "Basic secret": 401, "Bearer secret2": 401, "secret": 401,
		"Bearer secret": 200, "bearer secret": 200,
	} {
		s := serve(t, busy(t), func(o *admin.Options) { o.Token = "secret" })
		for _, path := range []string{"/status", "/watch-not", "/nothing"} {
			status, e := ask(t, s.Client(), newRequest(t, "GET", s.URL+path, "Authorization", auth))
			if want == 401 && (status != 401 || e.Code != "unauthorized") {
				t.Errorf("%q on %s: %d %+v", auth, path, status, e)
			}
			if want == 200 && status == 401 {
				t.Errorf("%q on %s: %d %+v", auth, path, status, e)
			}
		}
	}
}
