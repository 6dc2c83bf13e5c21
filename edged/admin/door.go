package admin

import (
	"fmt"
	"net/http"
	"strings"

	"iop/edged/adminapi"
)

// route is one path of the admin listener.
type route struct {
	path    string
	read    http.Handler // of GET and HEAD; nil = there is nothing to read
	change  http.Handler // of the method below; nil = nothing can be changed there
	method  string       // POST or DELETE
	what    string       // change is, in the log
	open    bool         // read needs no token
	guarded bool         // read gives more than the view token opens
}

// methods are those that the route takes, the main one first.
func (x *route) methods() (list []string) {
	if x.read != nil {
		list = append(list, http.MethodGet, http.MethodHead)
	}
	if x.change != nil {
		list = append(list, x.method)
	}
	return list
}

// reads tells of the methods that change nothing.
func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// shown is what a caller has shown.
type shown string

const (
	shownNone  shown = "none"
	shownWrong shown = "wrong"
	shownView  shown = "view"
	shownAdmin shown = "admin"
)

// caller is who calls, as far as it is known.
type caller struct {
	shown   shown
	browser bool
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	c, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		c.shown = shownNone
	}
	return c
}

// door lets the callers of a route through that may.
func (a *api) door(x *route) http.Handler {
	change := x.change
	if change != nil {
		change = a.audited(x.what, a.mayChange(change))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case change != nil && r.Method == x.method:
			change.ServeHTTP(w, r)
		case x.open && x.read != nil && reads(r.Method):
			x.read.ServeHTTP(w, r)
		case a.locked() && !callerOf(r).known():
			unauthorized(w)
		case x.path == "/": // nothing is there, by whichever method
			x.read.ServeHTTP(w, r)
		case x.read == nil || !reads(r.Method):
			notAllowed(w, r, x.methods())
		case x.guarded && callerOf(r).shown == shownView:
			writeError(w, readOnlyError("read "+x.path))
		default:
			x.read.ServeHTTP(w, r)
		}
	})
}

// locked tells whether a token is demanded.
func (a *api) locked() bool { return a.Token != "" }

func (c caller) known() bool { return c.shown == shownAdmin || c.shown == shownView }

// mayChange lets those through who may change something: with the admin token if there is one. A browser needs one in any
// case, because it also calls for pages that nobody meant to trust.
func (a *api) mayChange(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch c := callerOf(r); {
		case a.locked() && !c.known():
			unauthorized(w)
		case c.shown == shownView:
			writeError(w, readOnlyError("change anything"))
		case c.browser && !a.locked():
			writeError(w, &adminapi.Error{
				Code:    "token_needed",
				Message: "from a browser, nothing can be changed on an edge that has no admin token",
				Cure:    "set edge.admin.token (iopctl tokens new makes one), restart edged, and show it; or use iopctl",
				Status:  http.StatusForbidden,
			})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// actions tells what a caller may change. It is a hint for those who show it; mayChange decides.
func (a *api) actions(r *http.Request) string {
	switch c := callerOf(r); {
	case c.shown == shownView:
		return adminapi.ActionsReadOnly
	case !a.locked() && (c.browser || strings.HasPrefix(r.UserAgent(), "Mozilla/")):
		// Browsers don't say so when a page reads from its own origin and that is no secure one.
		return adminapi.ActionsTokenNeeded
	}
	return adminapi.ActionsAllowed
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="iop admin"`)
	writeError(w, &adminapi.Error{
		Code:    "unauthorized",
		Message: "the admin token is missing or wrong",
		Cure:    "send it as Authorization: Bearer TOKEN; with iopctl: --token or IOP_TOKEN",
		Status:  http.StatusUnauthorized,
	})
}

func readOnlyError(what string) error {
	return &adminapi.Error{
		Code:    "read_only",
		Message: "edge.admin.view_token was shown, which is not enough to " + what,
		Cure:    "show edge.admin.token instead",
		Status:  http.StatusForbidden,
	}
}

func notAllowed(w http.ResponseWriter, r *http.Request, methods []string) {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	writeError(w, &adminapi.Error{
		Code:    "method_not_allowed",
		Message: fmt.Sprintf("%s is not allowed on %s", r.Method, r.URL.Path),
		Cure:    "use " + methods[0],
		Status:  http.StatusMethodNotAllowed,
	})
}
