package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"iop/edged/adminapi"
)

// guard stands in front of all routes. A browser on the same machine reaches a loopback listener too, on behalf of any
// page that it shows, so a page of another origin is refused, and so is a name that was made to point here. What the
// routes behind it demand of a caller is in door.go.
type guard struct {
	api      *api
	next     http.Handler
	loopback bool
	host     string // that we listen on
	admin    secret
	view     secret
	patience time.Duration // with a caller that takes nothing of its answer
}

func newGuard(a *api) *guard {
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		host = a.Address
	}
	return &guard{
		api: a, next: a.routes(), loopback: isLoopback(host), host: host, admin: newSecret(a.Token), view: newSecret(a.ViewToken),
		patience: liveWriteMax,
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w = newPaced(w, g.patience)
	secureHeaders(w.Header())
	if e := g.foreign(r); e != nil {
		g.refuse(w, r, e)
		return
	}
	c := caller{browser: fromBrowser(r), shown: g.shown(r)}
	if c.shown == shownWrong || g.guessable(c.shown) {
		if wait := g.api.brake.wait(r.RemoteAddr, time.Now()); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
			g.refuse(w, r, &adminapi.Error{
				Code: "too_many_tries", Message: "too many wrong tokens came from this address",
				Cure: "try again in " + (wait + time.Second).Truncate(time.Second).String(), Status: http.StatusTooManyRequests,
			})
			return
		}
		if c.shown == shownWrong && g.api.brake.note(r.RemoteAddr, time.Now()) {
			g.api.Logger.WarnContext(r.Context(), "a wrong admin token was shown; after too many of them those of the address are not looked at for a while",
				"from", r.RemoteAddr, "agent", cutText(r.UserAgent(), agentMax))
		}
	}
	g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
}

// refuse answers a call that does not come as far as its route.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, e *adminapi.Error) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		g.api.refusedChange(r, "", e.Code)
	}
	writeError(w, e)
}

// secureHeaders are on every answer; the page has its own policy of what it may load.
func secureHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// foreign tells why a call may not come from where it does; nil = it may.
func (g *guard) foreign(r *http.Request) *adminapi.Error {
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
	}
	return nil
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
// call: the page doesn't get to see the answer. What a page embeds (frames, objects) is one.
func foreignOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		dest := r.Header.Get("Sec-Fetch-Dest")
		return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "" && dest != "document"
	}
	return false
}

// fromBrowser tells of a call that a browser made for a page. Every browser says so of what could change something.
func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// shown tells what a caller has shown.
func (g *guard) shown(r *http.Request) shown {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	admin, view := g.admin.is(token), g.view.is(token)
	switch {
	case !g.admin.set || r.Header.Get("Authorization") == "":
		return shownNone // where no token is demanded, one that is shown does no harm
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return shownWrong
	case admin:
		return shownAdmin
	case view:
		return shownView
	}
	return shownWrong
}

// guessable tells of a right token that may have been found by trying. Only such a one is braked like a wrong one: who shares
// an address with the one who tries (a NAT, a proxy, this machine) could be locked out otherwise by anybody.
func (g *guard) guessable(s shown) bool {
	return s == shownAdmin && g.admin.short || s == shownView && g.view.short
}

// secret is a token that callers are compared with, as SHA-256, so that comparing takes the same time for every length.
type secret struct {
	sum   [32]byte
	set   bool
	short bool // few enough to be tried
}

// shortToken is the length below which a token can be found by trying, in bytes. A start warns of such ones.
const shortToken = 16

func newSecret(token string) secret {
	return secret{sum: sha256.Sum256([]byte(token)), set: token != "", short: len(token) < shortToken}
}

func (s secret) is(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1 && s.set
}
