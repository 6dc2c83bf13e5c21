package openai

import (
	"net/http"
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

// answer says what a browser wants to know. true: that was all, it was a preflight.
func (c *CORS) answer(w http.ResponseWriter, r *http.Request) (preflight bool) {
	origin := first(r.Header["Origin"])
	if len(c.Origins) == 0 || origin == "" {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(c.Origins, "*") && !slices.Contains(c.Origins, origin) {
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
