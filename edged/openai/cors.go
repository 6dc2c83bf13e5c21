package openai

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS says which pages of other origins may call from a browser. The zero value: none, and nothing is said.
type CORS struct {
	Origins []string // as browsers send them, or "*" for all
	Headers []string // request headers beside those that are always allowed
	MaxAge  time.Duration
}

// Headers that pages may send and read.
const (
	corsSent = "Authorization, Content-Type, X-Api-Key, X-Request-Id, Idempotency-Key, Anthropic-Version, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access, OpenAI-Beta, OpenAI-Organization, OpenAI-Project, " +
		"X-Stainless-Arch, X-Stainless-Helper-Method, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, X-Stainless-Retry-Count, X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Timeout"
	corsRead    = "X-Request-Id, Request-Id, Retry-After, Retry-After-Ms, X-Should-Retry, X-Iop-Provider, X-Iop-Node, X-Iop-Lease, X-Iop-Queue-Ms, X-Iop-Dispatched, X-Iop-Estimated-Tokens, X-Iop-Class"
	corsMethods = "GET, HEAD, POST, DELETE, OPTIONS"
)

// stray tells whether a browser sends a request for a page that nobody has let in. A browser asks nobody before it sends a
// plain POST, so where no key is needed any page that a user looks at could have models, and agents with all that they may
// do, work for it. Where a key is needed, such a page has none.
func (c *CORS) stray(r *http.Request) bool {
	origin := first(r.Header["Origin"])
	if origin == "" || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions || c.lets(origin) {
		return false
	}
	u, err := url.Parse(origin)
	if err != nil || origin == "null" { // of a page in a sandbox, which may be anybody's
		return true
	}
	// Other schemes are those of applications and extensions, which their users have installed.
	return (u.Scheme == "http" || u.Scheme == "https") && (!strings.EqualFold(u.Host, r.Host) || rebindable(r.Host))
}

// rebindable tells whether whoever owns the host's name may have made it point here after his page was loaded from elsewhere
// (DNS rebinding). An address, and a name that every system resolves by itself, can't be made to. Behind a proxy that serves
// pages under a name of its own, edge.cors.origins lets those in.
func rebindable(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err = netip.ParseAddr(host)
	return err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

func (c *CORS) lets(origin string) bool {
	return slices.Contains(c.Origins, "*") || slices.Contains(c.Origins, origin)
}

func strayPage(r *http.Request) *failure {
	return &failure{kind: kindOrigin, message: "A page of " + shown(first(r.Header["Origin"])) + " may not call this gateway, which asks for no key. Ask the operator to name the page's origin in edge.cors.origins, or to set openai.principal_tokens."}
}

// answer says what a browser wants to know. true: that was all, it was a preflight.
func (c *CORS) answer(w http.ResponseWriter, r *http.Request) (preflight bool) {
	origin := first(r.Header["Origin"])
	if len(c.Origins) == 0 || origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !c.lets(origin) {
		return false
	}
	h["Access-Control-Allow-Origin"] = []string{origin}
	h["Access-Control-Expose-Headers"] = []string{corsRead}
	if r.Method != http.MethodOptions || len(r.Header["Access-Control-Request-Method"]) == 0 {
		return false
	}
	h["Access-Control-Allow-Methods"] = []string{corsMethods}
	h["Access-Control-Allow-Headers"] = []string{strings.Join(append([]string{corsSent}, c.Headers...), ", ")}
	if c.MaxAge > 0 {
		h["Access-Control-Max-Age"] = []string{strconv.Itoa(int(c.MaxAge / time.Second))}
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}
