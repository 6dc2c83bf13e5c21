package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"iop/edged/adminapi"
)

// guard stands in front of all routes. A browser on the same machine reaches a loopback listener too, on behalf of any
// page that it shows, so a page of another origin is refused, and so is a name that was made to point here.
type guard struct {
	next     http.Handler
	loopback bool
	host     string   // that we listen on
	token    [32]byte // SHA-256 of the token, so that comparing takes the same time for every length
	locked   bool
}

func newGuard(o Options, next http.Handler) *guard {
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		host = o.Address
	}
	return &guard{
		next:     next,
		loopback: isLoopback(host),
		host:     host,
		token:    sha256.Sum256([]byte(o.Token)),
		locked:   o.Token != "",
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e := g.refuse(r); e != nil {
		if e.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="iop admin"`)
		}
		writeError(w, e)
		return
	}
	g.next.ServeHTTP(w, r)
}

// refuse tells why a call may not pass; nil = it may.
func (g *guard) refuse(r *http.Request) *adminapi.Error {
	switch {
	case g.loopback && !g.knownHost(r.Host):
		return &adminapi.Error{
			Code:    "forbidden_host",
			Message: fmt.Sprintf("Host %q is not this listener's", r.Host),
			Cure:    "call it as localhost, 127.0.0.1 or [::1]",
			Status:  http.StatusForbidden,
		}
	case foreignOrigin(r):
		return &adminapi.Error{
			Code:    "forbidden_origin",
			Message: "a page of another origin may not call the admin listener",
			Cure:    "open the admin address itself, or use iopctl or curl",
			Status:  http.StatusForbidden,
		}
	case g.locked && !open(r.URL.Path) && !g.hasToken(r):
		return &adminapi.Error{
			Code:    "unauthorized",
			Message: "the admin token is missing or wrong",
			Cure:    "send it as Authorization: Bearer TOKEN; with iopctl: --token or IOP_TOKEN",
			Status:  http.StatusUnauthorized,
		}
	}
	return nil
}

// open tells of what needs no token: whether the edge lives, and the page, which holds nothing before it has shown one.
func open(path string) bool {
	return path == "/healthz" || path == "/" || strings.HasPrefix(path, "/ui/")
}

func (g *guard) knownHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return isLoopback(host) || strings.EqualFold(host, g.host)
}

func isLoopback(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// foreignOrigin tells whether a browser made this call for a page from elsewhere. Following a link to here is no such
// call: the page doesn't get to see the answer.
func foreignOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

func (g *guard) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
