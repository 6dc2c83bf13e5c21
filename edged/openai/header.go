package openai

import (
	"net/http"
	"strconv"
	"strings"
)

// hopByHop tells of a canonical header name that it is for one connection only (RFC 9110 7.6.1), or is set anew here.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Content-Length":
		return true
	}
	return false
}

// cleanHeader takes out of the request's headers what is not for the backend: the gateway's key, what belongs to the
// client's connection, and the wish for a compressed answer (an answer is looked through). Api-Key and Cookie are secrets
// that are meant for somebody else: with an Api-Key of its own a request would go without the node's key.
func (x *exchange) cleanHeader() {
	h := x.r.Header
	dropNamed(h)
	for name := range h {
		switch {
		case hopByHop(name):
			delete(h, name)
		case name == "Authorization", name == "X-Api-Key", name == "Api-Key", name == "Cookie", name == "Accept-Encoding", name == "Content-Encoding", name == "Expect":
			delete(h, name)
		}
	}
}

// dropNamed deletes the headers that Connection names.
func dropNamed(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
}

// ours are the headers that this edge adds to an answer.
func (x *exchange) ours(h http.Header) {
	h["X-Request-Id"] = []string{x.shown}
	if x.estimate != "" {
		h["X-Iop-Estimated-Tokens"] = []string{x.estimate}
		h["X-Iop-Class"] = []string{x.class}
	}
}

// granted are the headers that tell of the lease.
func (x *exchange) granted(h http.Header, d Dispatched) {
	g := &x.out.Grant
	// One array for all values: each is a slice of its own.
	v := []string{
		string(g.Provider), string(g.Node), strconv.FormatUint(uint64(g.Lease), 10),
		strconv.FormatInt(x.waited.Milliseconds(), 10), d.header(),
	}
	h["X-Iop-Provider"] = v[0:1:1]
	h["X-Iop-Node"] = v[1:2:2]
	h["X-Iop-Lease"] = v[2:3:3]
	h["X-Iop-Queue-Ms"] = v[3:4:4]
	h["X-Iop-Dispatched"] = v[4:5:5]
}

// streamHeader keeps proxies from holding a stream back.
func streamHeader(h http.Header) {
	h["Content-Type"] = []string{"text/event-stream"}
	noBuffering(h)
}

func noBuffering(h http.Header) {
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
}

// pass copies a backend's headers into an answer.
func pass(h, from http.Header) {
	dropNamed(from)
	for name, v := range from {
		// Whom a page may be from is said by this edge alone.
		if !hopByHop(name) && !strings.HasPrefix(name, "Access-Control-") {
			h[name] = v
		}
	}
}

// mediaType is the type of a body, without parameters, in lower case.
func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(first(h["Content-Type"]), ";")
	return strings.ToLower(strings.TrimSpace(t))
}
