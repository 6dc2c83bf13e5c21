package openai

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// token is a token that may call: the SHA-256 of it, and whose it is.
type token struct {
	sum            [sha256.Size]byte
	principal, ref string
}

// caller is who makes a request; empty if anyone may.
type caller struct{ principal, token string }

// identify finds out who calls. The time it takes does not depend on which token was sent or how much of it is right.
func (c *catalog) identify(h http.Header) (who caller, ok bool) {
	if len(c.tokens) == 0 {
		return caller{}, true
	}
	raw := bearer(h)
	if raw == "" {
		return caller{}, false
	}
	sum := sha256.Sum256([]byte(raw))
	found := -1
	for i := range c.tokens {
		same := subtle.ConstantTimeCompare(sum[:], c.tokens[i].sum[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return caller{}, false
	}
	return caller{principal: c.tokens[found].principal, token: c.tokens[found].ref}, true
}

// bearer is the token that was sent: as Authorization: Bearer, or as x-api-key.
func bearer(h http.Header) string {
	if v := h["Authorization"]; len(v) > 0 {
		scheme, raw, _ := strings.Cut(v[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(raw)
		}
	}
	if v := h["X-Api-Key"]; len(v) > 0 {
		return strings.TrimSpace(v[0])
	}
	return ""
}

// gatewayHeader tells of a header that it carries the gateway's own key.
func gatewayHeader(name string) bool {
	return strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "X-Api-Key")
}

// providerKey takes the caller's own key for the backend out of the headers. ok = false: it is required and missing.
func (p *ProviderAuth) providerKey(h http.Header) (value string, ok bool) {
	if !p.Enabled {
		if p.FromHeader != "" && !gatewayHeader(p.FromHeader) {
			h.Del(p.FromHeader) // a client may send it all the same: it is for nobody then
		}
		return "", true
	}
	raw := strings.TrimSpace(h.Get(p.FromHeader))
	h.Del(p.FromHeader)
	switch {
	case raw == "":
		return "", !p.Required
	case p.Scheme == "" || len(raw) > len(p.Scheme) && strings.EqualFold(raw[:len(p.Scheme)+1], p.Scheme+" "):
		return raw, true
	}
	return p.Scheme + " " + raw, true
}
