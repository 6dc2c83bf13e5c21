package adapter_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"iop/noded/adapter"
)

// captured sends a call and returns the request as the backend read it, with its body.
func captured(t *testing.T, config adapter.OpenAIConfig, c *adapter.Call) (*http.Request, string) {
	t.Helper()
	got := make(chan *http.Request, 1)
	b := newRawBackend(t, func(c *rawConn) {
		got <- c.request()
		c.write(withLength("ok"))
	})
	config.BaseURL = b.url() + config.BaseURL
	_, end := do(t.Context(), newOpenAI(t, config), c)
	wantEnd(t, end, adapter.DispatchedYes, "")
	r := <-got
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Host != strings.TrimPrefix(b.url(), "http://") {
		t.Errorf("Host is %q, want the backend's own", r.Host)
	}
	return r, string(body)
}

func TestACallGoesOutAsItIs(t *testing.T) {
	c := post("{\"model\": \"m\",\n\t\"x\":\"\u00e4\\u00e4\"}  ")
	c.Header = http.Header{
		"Content-Type": {"application/json; charset=utf-8"},
		"X-Many":       {"one", "two"},
		"Traceparent":  {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	c.Path = "/v1/chat/completions?a=%20b&c"
	r, body := captured(t, adapter.OpenAIConfig{}, c)
	if body != string(c.Body) {
		t.Errorf("body %q, want %q", body, c.Body)
	}
	if r.Method != "POST" || r.RequestURI != c.Path {
		t.Errorf("request line %s %s, want POST %s", r.Method, r.RequestURI, c.Path)
	}
	for name, want := range c.Header {
		if got := r.Header.Values(name); !slices.Equal(got, want) {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if r.ContentLength != int64(len(c.Body)) || len(r.TransferEncoding) != 0 {
		t.Errorf("Content-Length %d, transfer encoding %v; want %d and none", r.ContentLength, r.TransferEncoding, len(c.Body))
	}
}

func TestHeadersOfOneHopStayBehind(t *testing.T) {
	c := post("{}")
	for _, name := range []string{
		"Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Accept-Encoding", "Expect", "X-Only-Here",
	} {
		c.Header.Set(name, "chunked")
	}
	c.Header.Set("Connection", "close, x-only-here")
	c.Header.Set("Host", "elsewhere")
	c.Header.Set("Content-Length", "7")
	r, body := captured(t, adapter.OpenAIConfig{}, c)
	if body != "{}" || r.Close || len(r.TransferEncoding) != 0 {
		t.Errorf("body %q, close %v, transfer encoding %v", body, r.Close, r.TransferEncoding)
	}
	var names []string
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"Content-Length", "Content-Type"}; !slices.Equal(names, want) {
		t.Errorf("the backend got the headers %v, want %v", names, want)
	}
}

func TestTheNodesKeyIsSentUnlessTheCallBringsItsOwn(t *testing.T) {
	for name, c := range map[string]struct{ header, value, want string }{
		"none":      {"X-Other", "x", "Bearer node-key"},
		"bearer":    {"Authorization", "Bearer caller", "Bearer caller"},
		"x-api-key": {"X-Api-Key", "caller", ""},
	} {
		t.Run(name, func(t *testing.T) {
			call := post("{}")
			call.Header.Set(c.header, c.value)
			r, _ := captured(t, adapter.OpenAIConfig{APIKey: "node-key"}, call)
			if got := r.Header.Get("Authorization"); got != c.want || len(r.Header.Values("Authorization")) > 1 {
				t.Errorf("Authorization is %q, want %q", r.Header.Values("Authorization"), c.want)
			}
		})
	}
}

func TestPathsAreJoinedToTheBase(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"", "/v1/chat/completions", "/v1/chat/completions"},
		{"/", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1/", "/v1/chat/completions?x=1", "/v1/chat/completions?x=1"},
		{"/api/v1", "/v1/embeddings", "/api/v1/embeddings"},
		{"/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"},
		{"/a%2Fb/v1", "/v1/models/x%2Fy", "/a%2Fb/v1/models/x%2Fy"},
		{"/v1", "/health", "/health"},
		{"/api/v1", "/health", "/api/health"},
		{"/v1", "/v1", "/v1"},
		{"/x", "/v1?q", "/x?q"},
		{"/x", "/v12/y", "/x/v12/y"},
	} {
		call := post("{}")
		call.Path = c.path
		if r, _ := captured(t, adapter.OpenAIConfig{BaseURL: c.base}, call); r.RequestURI != c.want {
			t.Errorf("base %q and path %q give %q, want %q", c.base, c.path, r.RequestURI, c.want)
		}
	}
}

func TestABaseURLThatCannotBeDialledIsRefused(t *testing.T) {
	for _, base := range []string{"", "localhost:8000", "ftp://h/v1", "http:///v1", "http://u:geheim@h/v1", "http://h/v1?x=1", "http://h/v1#x", "http://h:geheim:1/"} {
		_, err := adapter.NewOpenAI(adapter.OpenAIConfig{BaseURL: base})
		if err == nil {
			t.Errorf("%q was accepted", base)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
	if _, err := adapter.NewOpenAI(adapter.OpenAIConfig{BaseURL: "http://h/v1", APIKey: "key\r\nX: y"}); err == nil {
		t.Error("a key with a line end was accepted")
	}
}

func TestACallThatWouldSmuggleAnotherIsNotSent(t *testing.T) {
	b := newRawBackend(t, always(withLength("ok")))
	o := newOpenAI(t, adapter.OpenAIConfig{BaseURL: b.url()})
	for name, spoil := range map[string]func(c *adapter.Call){
		"method":         func(c *adapter.Call) { c.Method = "POST / HTTP/1.1\r\nX:" },
		"no method":      func(c *adapter.Call) { c.Method = "" },
		"path":           func(c *adapter.Call) { c.Path = "/v1/x HTTP/1.1\r\nX: y" },
		"path relative":  func(c *adapter.Call) { c.Path = "http://elsewhere/" },
		"header value":   func(c *adapter.Call) { c.Header["X-A"] = []string{"a\r\nTransfer-Encoding: chunked"} },
		"header name":    func(c *adapter.Call) { c.Header["X-A: b\r\nY"] = []string{"a"} },
		"header null":    func(c *adapter.Call) { c.Header["X-A"] = []string{"a\x00"} },
		"header no name": func(c *adapter.Call) { c.Header[""] = []string{"a"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := post("{}")
			spoil(c)
			r, end := do(t.Context(), o, c)
			wantEnd(t, end, adapter.DispatchedNo, adapter.CodeBadCall)
			if r.status != 0 {
				t.Errorf("an answer came: %d", r.status)
			}
		})
	}
}
