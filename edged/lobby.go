package edged

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"iop/edged/adminapi"
)

// lobby answers in the place of an edge that has not got its log yet: it may wait for the other replicas, or to be taken in,
// and that can take as long as it likes. Callers are told so rather than left hanging. A start that is done within
// lobbyAfter shows nothing of it: whoever came meanwhile waits in the listener's backlog.
type lobby struct {
	cancel context.CancelFunc
	over   sync.WaitGroup
}

const (
	lobbyAfter = 2 * time.Second
	lobbyRetry = "2"             // s, of Retry-After
	lobbyHTTP  = time.Second / 2 // for answers that are being written when the edge takes over
)

// receive opens the lobby; close has to be called.
func (d *Daemon) receive() *lobby {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lobby{cancel: cancel}
	for _, desk := range []struct {
		port  net.Listener
		serve func(*http.Server, net.Listener) error
		h     http.Handler
	}{
		{d.ports.openai, d.servePublic, startingPublic()},
		{d.ports.admin, d.serveAdmin, d.startingAdmin()},
	} {
		port, ok := desk.port.(interruptible)
		if !ok {
			continue
		}
		l.over.Go(func() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(lobbyAfter):
			}
			d.attend(ctx, lent{port}, desk.serve, desk.h)
		})
	}
	return l
}

// attend serves at a borrowed listener until ctx ends, and gives it back.
func (d *Daemon) attend(ctx context.Context, port lent, serve func(*http.Server, net.Listener) error, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: newHTTPLog(d.log)}
	s.SetKeepAlivesEnabled(false)
	var over sync.WaitGroup
	over.Go(func() { _ = serve(s, port) }) // what is wrong with the certificate is told by the edge that takes over
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), lobbyHTTP)
	defer cancel()
	if s.Shutdown(end) != nil {
		_ = s.Close() // who has not asked by now is cut off
	}
	over.Wait()
	_ = port.SetDeadline(time.Time{}) // a closed one needs none
}

// close ends the lobby, before the edge takes over.
func (l *lobby) close() {
	l.cancel()
	l.over.Wait()
}

// interruptible is a listener whose Accept can be ended without closing it.
type interruptible interface {
	net.Listener
	SetDeadline(time.Time) error
}

// lent is a listener that stays open when it is closed.
type lent struct{ interruptible }

// Close ends Accept.
func (l lent) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

func startingPublic() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" { // the process lives
			reply(w, http.StatusOK, adminapi.Health{Status: "ok"})
			return
		}
		w.Header().Set("Retry-After", lobbyRetry)
		reply(w, http.StatusServiceUnavailable, map[string]any{"error": map[string]any{
			"message": "This edge is starting and has no contact to its cluster yet. Try again after the time in Retry-After, or at another edge.",
			"type":    "server_error", "param": nil, "code": "no_leader",
		}})
	})
}

func (d *Daemon) startingAdmin() http.Handler {
	e := &adminapi.Error{
		Code: "starting", Message: "the edge is starting: it reads its log", Cure: "try again in a moment; if that does not help, see its log",
	}
	if d.peers != nil {
		e.Message = "the edge is starting: it reads its log, and waits for the other replicas"
		e.Cure = "its log says what is missing; 'iopctl cluster members' at another edge says how the cluster stands"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			reply(w, http.StatusOK, adminapi.Health{Status: "ok"})
			return
		}
		reply(w, http.StatusServiceUnavailable, adminapi.ErrorBody{Error: e})
	})
}

func reply(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the caller may have left
}
