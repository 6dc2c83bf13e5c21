package configs

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// check reports what can't be exported to. path is edge.traces or node.traces.
func (t *Traces) check(r *report, path string) {
	if t.Endpoint == "" {
		if (len(t.Headers) > 0 || t.CA != "") && !r.failed(path+".endpoint") {
			r.warn(path+".endpoint", "is empty: nothing is recorded, and the other keys of "+path+" are not looked at")
		}
		return
	}
	u := t.checkEndpoint(r, path+".endpoint")
	if u == nil {
		return
	}
	if t.CA != "" && u.Scheme == "http" && !r.failed(path+".ca") {
		r.problem(path+".ca", "is given while "+path+".endpoint is plain http", "write https:// in "+path+".endpoint, or remove it")
	}
	t.checkHeaders(r, path+".headers", u)
}

func (t *Traces) checkEndpoint(r *report, path string) *url.URL {
	if r.failed(path) {
		return nil
	}
	const cure = "write http://host:port, or https://host:port with TLS, for example http://127.0.0.1:4317"
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(u.Host, " \t"):
		r.problem(path, "this is no URL of a collector", cure)
	case u.User != nil:
		r.problem(path, "it holds a name or a password", "remove it, and give headers: { authorization: \"${NAME}\" }")
	case u.RawQuery != "" || u.Fragment != "":
		r.problem(path, "it holds a query or a fragment", cure)
	case t.Protocol == "grpc" && u.Path != "" && u.Path != "/":
		r.problem(path, "it holds a path, and gRPC has none", "remove the path, or set protocol: http")
	default:
		return u
	}
	return nil
}

func (t *Traces) checkHeaders(r *report, path string, u *url.URL) {
	if len(t.Headers) > 0 && u.Scheme == "http" && !onLoopback(net.JoinHostPort(u.Hostname(), "1")) && !r.failed(path) {
		r.problem(path, "they would travel unencrypted to another machine", "write https:// in the endpoint, send to a collector on 127.0.0.1, or remove them")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		switch at, value := keyPath(path, name), t.Headers[name].Reveal(); {
		case r.failed(at):
		case !headerPattern.MatchString(name):
			r.problem(at, "is no name of a header", "use letters, digits and -, as in authorization")
		case value == "":
			r.problem(at, "is empty", "give a value, or remove it")
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
			r.problem(at, "its value holds what no header may (a line end, perhaps)", "correct the value")
		}
	}
}
