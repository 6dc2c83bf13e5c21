package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"iop/edged/adminapi"
)

// answer computes the body of a success, or an *adminapi.Error.
type answer func(*http.Request) (any, error)

// respond writes what an answer computed.
func (a *api) respond(answer answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.stand(w.Header())
		body, err := answer(r)
		if err == nil {
			writeJSON(w, http.StatusOK, body)
			return
		}
		a.fail(w, r, err)
	})
}

// stand tells what kind of replica an answer is from. The state that it tells of is at least as new as the index.
func (a *api) stand(h http.Header) {
	s := a.Standing()
	h.Set(adminapi.HeaderIndex, strconv.FormatUint(s.Index, 10))
	h.Set(adminapi.HeaderLag, strconv.FormatUint(s.Lag, 10))
	h.Set(adminapi.HeaderLeader, s.Leader)
}

// fail writes an error; one that nobody foresaw is logged.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *adminapi.Error
	if !errors.As(err, &e) {
		a.Logger.ErrorContext(r.Context(), "admin answer", "path", r.URL.Path, "error", err)
	}
	writeError(w, err)
}

func notFound(r *http.Request) (any, error) {
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		return nil, &adminapi.Error{
			Code:    "not_found",
			Message: "there is nothing at " + r.URL.Path + ": this is the admin listener",
			Cure:    "the OpenAI API is at the address that edged's ready line shows as openai=HOST:PORT",
			Status:  http.StatusNotFound,
		}
	}
	return nil, &adminapi.Error{
		Code:    "not_found",
		Message: "there is nothing at " + r.URL.Path,
		Cure: "the admin listener has /status, /providers, /providers/{id}, /nodes, /models, /leases, /leases/{id}, /queue, /queue/{id}/cancel, /requests/{id}, " +
			"/config, /config/history, /refresh, /nodes/{id}/join, /drain, /cluster, /usage, /live, /pulse, /watch, /metrics and /healthz; the OpenAI API is on another port",
		Status: http.StatusNotFound,
	}
}

// writeError answers with an error; one that is none of ours is answered 500.
func writeError(w http.ResponseWriter, err error) {
	var e *adminapi.Error
	if !errors.As(err, &e) {
		e = &adminapi.Error{
			Code: "failed", Message: err.Error(), Cure: "see the edge's log", Status: http.StatusInternalServerError,
		}
	}
	if o, ok := w.(*outcome); ok {
		o.code = e.Code
	}
	writeJSON(w, e.Status, adminapi.ErrorBody{Error: e})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the caller left.
	_ = json.NewEncoder(w).Encode(body)
}
