package adapter

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// errBadCall: the call can't be written as an HTTP/1.1 request.
var errBadCall = errors.New("call is not a valid HTTP request")

// appendHead writes request line and headers of c for the endpoint e, with key as the bearer token unless the call
// brings a credential of its own. It is strict, because what a header smuggles in here is another request there.
func appendHead(b []byte, e endpoint, c *Call, key string) ([]byte, error) {
	if !isToken(c.Method) || !isTarget(c.Path) {
		return b, fmt.Errorf("%w: method %q, path %q", errBadCall, c.Method, c.Path)
	}
	b = append(b, c.Method...)
	b = append(b, ' ')
	b = append(b, e.target(c.Path)...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, e.host...)
	b = append(b, "\r\n"...)
	named := c.Header["Connection"]
	for name, values := range c.Header {
		if isPerHop(name) || isOurs(name) || namedBy(named, name) {
			continue
		}
		for _, v := range values {
			if !isToken(name) || !isValue(v) {
				return b, fmt.Errorf("%w: header %q", errBadCall, name)
			}
			b = appendField(b, name, v)
		}
	}
	if key != "" && !hasCredential(c.Header) {
		b = append(appendKey(b, "Authorization"), "Bearer "...)
		b = append(append(b, key...), "\r\n"...)
	}
	if len(c.Body) > 0 || takesBody(c.Method) {
		b = appendKey(b, "Content-Length")
		b = append(strconv.AppendInt(b, int64(len(c.Body)), 10), "\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

func appendKey(b []byte, name string) []byte { return append(append(b, name...), ": "...) }

func appendField(b []byte, name, value string) []byte {
	return append(append(appendKey(b, name), value...), "\r\n"...)
}

// isPerHop names the headers that belong to one connection: RFC 9110 7.6.1, and those of older proxies.
func isPerHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authenticate", "Proxy-Authorization":
		return true
	}
	return false
}

// isOurs names the request headers that are made anew here, or not sent: without Accept-Encoding a backend answers
// plainly, so that frames can be read and passed on as they come.
func isOurs(name string) bool {
	switch name {
	case "Host", "Content-Length", "Accept-Encoding", "Expect":
		return true
	}
	return false
}

// namedBy reports whether one of the Connection headers' values names this header as per hop.
func namedBy(connection []string, name string) bool {
	for _, v := range connection {
		for option := range strings.SplitSeq(v, ",") {
			if textproto.CanonicalMIMEHeaderKey(textproto.TrimString(option)) == name {
				return true
			}
		}
	}
	return false
}

// hasCredential reports whether the call brings a provider's token of its own; the node's key then stays here.
func hasCredential(h http.Header) bool {
	return len(h["Authorization"]) > 0 || len(h["X-Api-Key"]) > 0 || len(h["Api-Key"]) > 0
}

// stripPerHop removes from an answer what belonged to the backend's connection.
func stripPerHop(h http.Header) {
	for _, v := range h["Connection"] {
		for option := range strings.SplitSeq(v, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(option)))
		}
	}
	for name := range h {
		if isPerHop(name) {
			delete(h, name)
		}
	}
}

// takesBody reports whether a request of this method says its length even if it is 0.
func takesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// isToken reports whether s is a token of RFC 9110 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return s != ""
}

// isTarget reports whether s may stand as the target in a request line.
func isTarget(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return s != "" && s[0] == '/'
}

// isValue reports whether s may stand as a header's value.
func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c == 0x7f {
			return false
		}
	}
	return true
}
