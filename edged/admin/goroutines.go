package admin

import (
	"net/http"
	"runtime/pprof"
)

// goroutines tells what all goroutines of the edge do: stacks without arguments, equal ones once, in Go's own text form. For a
// moment everything stands still for it.
func (a *api) goroutines(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	// A client that is gone is nobody's concern.
	_ = pprof.Lookup("goroutine").WriteTo(w, 1)
}
