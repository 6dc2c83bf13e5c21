package adapter

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// endpoint is where a base_url points: what to dial, and how the gateway's paths become the backend's.
type endpoint struct {
	tls     bool
	address string // host:port
	server  string // host alone, for TLS
	host    string // the Host header
	base    string // path without a trailing slash, escaped as it was written; "" for none
}

// parseEndpoint reads a base_url. Its user part, query and fragment have no place there.
func parseEndpoint(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, errors.New("base_url is not a URL") // err would quote a password in it
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return endpoint{}, fmt.Errorf("base_url needs http:// or https://, not %q", u.Scheme)
	case u.Hostname() == "":
		return endpoint{}, errors.New("base_url has no host")
	case u.User != nil:
		return endpoint{}, errors.New("base_url has a user or password; put the key into the environment and name it in api_key_env")
	case u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, errors.New("base_url has a query or a fragment")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return endpoint{
		tls:     u.Scheme == "https",
		address: net.JoinHostPort(u.Hostname(), port),
		server:  u.Hostname(),
		host:    u.Host,
		base:    strings.TrimRight(u.EscapedPath(), "/"),
	}, nil
}

// target turns the gateway's path into the backend's. A base_url names what stands in for /v1, as it does for every
// SDK; without a path it is the server's root. Paths outside /v1 (/health) are beside the base's own /v1.
func (e endpoint) target(path string) string {
	if e.base == "" {
		return path
	}
	if rest, ok := underV1(path); ok {
		return e.base + rest
	}
	return strings.TrimSuffix(e.base, "/v1") + path
}

// underV1 returns what follows /v1 in path, and whether path is /v1 or below it.
func underV1(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "/v1")
	if !ok || (rest != "" && rest[0] != '/' && rest[0] != '?') {
		return "", false
	}
	return rest, true
}
