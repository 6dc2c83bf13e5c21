package admin

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"iop/edged/adminapi"
)

// Bounds of what is logged of a caller, in bytes.
const (
	agentMax    = 100
	operatorMax = 64
	pathMax     = 200
)

// deed is what a caller of a route that changes something did. The route's wrapper makes it and logs it; the handler says
// what it was about.
type deed struct {
	what     string
	attrs    []any
	harmless bool   // nothing was to be changed: a dry run
	done     bool   // it has happened, whatever is answered
	result   string // of one that came to nothing, if the answer is no error
}

type deedKey struct{}

// deedOf gives the deed of a call, one that nobody reads if its route changes nothing.
func deedOf(r *http.Request) *deed {
	if d, ok := r.Context().Value(deedKey{}).(*deed); ok {
		return d
	}
	return &deed{}
}

// changed tells what a caller has changed.
func (a *api) changed(r *http.Request, what string, attrs ...any) {
	d := deedOf(r)
	d.what, d.attrs, d.done = what, attrs, true
}

// harmless tells that a call that could have changed something was not meant to.
func harmless(r *http.Request) { deedOf(r).harmless = true }

// unchanged tells why a call came to nothing whose answer is no error.
func unchanged(r *http.Request, result string) { deedOf(r).result = result }

// deedMax bounds how long a change may take. Each of its steps has a bound of its own, below that.
const deedMax = time.Minute

// audited logs one line of each call of a route that changes something: what, who, from where, and what came of it. A route
// can't forget it; one that says nothing is logged under its own name. What was begun is followed to its end also when the
// caller has left: else the log would say that nothing was changed of what is.
func (a *api) audited(what string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &deed{what: what}
		seen := &outcome{ResponseWriter: w}
		defer func() {
			if seen.status == 0 { // it panicked
				seen.code = "failed"
			}
			a.audit(r, d, seen)
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deedMax)
		defer cancel()
		next.ServeHTTP(seen, r.WithContext(context.WithValue(ctx, deedKey{}, d)))
	})
}

func (a *api) audit(r *http.Request, d *deed, seen *outcome) {
	switch {
	case !d.done && (seen.status == 0 || seen.status >= http.StatusBadRequest):
		a.Changed(d.what, false)
		a.refusedChange(r, d.what, firstOf(seen.code, d.result, strconv.Itoa(seen.status)))
	case !d.harmless:
		a.Changed(d.what, true)
		line := append(who(r), "result", "done")
		a.Logger.InfoContext(r.Context(), "changed by an operator", append(append([]any{"what", d.what}, line...), d.attrs...)...)
	}
}

// refusedChange logs an attempt that came to nothing. A flood of them is cut: the next line says how many have none.
func (a *api) refusedChange(r *http.Request, what, code string) {
	unlogged, ok := a.refusals.take(time.Now())
	if !ok {
		return
	}
	line := append([]any{"what", what, "path", cutText(r.URL.Path, pathMax), "method", r.Method}, who(r)...)
	line = append(line, "result", code)
	if unlogged > 0 {
		line = append(line, "unlogged", unlogged)
	}
	a.Logger.WarnContext(r.Context(), "not changed by an operator", line...)
}

// who tells who called: which token was shown, the name that the caller claims to have, from where and with what.
func who(r *http.Request) []any {
	line := []any{slog.String("token", string(callerOf(r).shown))}
	if name := claimedName(r.Header.Get(adminapi.HeaderOperator)); name != "" {
		line = append(line, "operator", name)
	}
	return append(line, "from", r.RemoteAddr, "agent", cutText(r.UserAgent(), agentMax))
}

// claimedName makes a name fit for a log.
func claimedName(s string) string {
	if len(s) > 4*operatorMax {
		return ""
	}
	if plain, err := url.PathUnescape(s); err == nil {
		s = plain
	}
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) && c != unicode.ReplacementChar {
			return c
		}
		return -1
	}, s)
	return cutText(strings.TrimSpace(s), operatorMax)
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// outcome remembers what a call was answered.
type outcome struct {
	http.ResponseWriter
	status int
	code   string // of an error
}

// WriteHeader notes the status.
func (o *outcome) WriteHeader(status int) {
	if o.status == 0 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer is a success if nothing else was said.
func (o *outcome) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	return o.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// throttle lets lines through: a handful at once, then one a second.
type throttle struct {
	mu       sync.Mutex // guards the rest
	spent    float64
	at       time.Time
	unlogged int
}

const throttleBurst = 100

// take tells whether a line may be written, and how many were not since the last one.
func (t *throttle) take(now time.Time) (unlogged int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent = max(0, t.spent-now.Sub(t.at).Seconds())
	t.at = now
	if t.spent > throttleBurst-1 {
		t.unlogged++
		return 0, false
	}
	t.spent++
	unlogged, t.unlogged = t.unlogged, 0
	return unlogged, true
}
