package admin

import (
	"log/slog"
	"net/http"
)

// agentMax is how many bytes of a caller's User-Agent are logged.
const agentMax = 100

// changed logs what a caller has changed: one line, with the address that he called from, what he called with, and whether
// he had to show the admin token.
func (a *api) changed(r *http.Request, what string, attrs ...any) {
	agent := r.UserAgent()
	if len(agent) > agentMax {
		agent = agent[:agentMax]
	}
	who := []any{"what", what, slog.String("from", r.RemoteAddr), slog.String("agent", agent), slog.Bool("token", a.Token != "")}
	a.Logger.InfoContext(r.Context(), "changed by an operator", append(who, attrs...)...)
}
