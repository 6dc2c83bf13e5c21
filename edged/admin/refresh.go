package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"iop/configs"
	"iop/edged/adminapi"
)

// refresh has a configuration applied, or reports what that would do.
func (a *api) refresh(w http.ResponseWriter, r *http.Request) {
	q, err := refreshRequest(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	report, err := a.Refresh(r.Context(), *q)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.reported(r, report, q.DryRun, "refresh", "revision", report.Revision)
	writeJSON(w, refreshStatus(report.Result), report)
}

// reported tells the log what came of a change of the configuration.
func (a *api) reported(r *http.Request, report *adminapi.RefreshReport, dryRun bool, what string, attrs ...any) {
	switch {
	case dryRun || report.Result == adminapi.RefreshNoChange:
		harmless(r)
	case report.Result == adminapi.RefreshApplied:
		a.changed(r, what, attrs...)
	default:
		unchanged(r, report.Result)
	}
}

// refreshStatus is the HTTP status of a result.
func refreshStatus(result string) int {
	switch result {
	case adminapi.RefreshRestartRequired, adminapi.RefreshConflict:
		return http.StatusConflict
	case adminapi.RefreshInvalid:
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

func refreshRequest(w http.ResponseWriter, r *http.Request) (*adminapi.RefreshRequest, error) {
	q := &adminapi.RefreshRequest{}
	query := r.URL.Query()
	for key, values := range query {
		value := values[len(values)-1]
		var err error
		switch key {
		case "dry_run":
			q.DryRun, err = strconv.ParseBool(value)
		case "live_only":
			q.LiveOnly, err = strconv.ParseBool(value)
		case "expected_revision":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 64)
			q.Expected = &n
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return nil, badRequest(fmt.Sprintf("the query has %s=%q", key, value),
				"it takes dry_run=true, live_only=true and expected_revision=N")
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, configs.FileMax))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		linger(w, r)
		e := badRequest(fmt.Sprintf("the file is larger than %d MiB", configs.FileMax>>20), "check that it is a configuration file")
		e.Code, e.Status = "too_large", http.StatusRequestEntityTooLarge
		return nil, e
	case err != nil:
		return nil, badRequest("the file did not arrive whole: "+err.Error(), "send it again")
	}
	q.File = body
	return q, nil
}

// linger takes what a caller still sends, within bounds: who is answered and cut off while he writes may see only the cut.
func linger(w http.ResponseWriter, r *http.Request) {
	// A writer without deadlines is one of a test.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerMax))
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytesMax) // what is beyond it is cut off
}

// Bounds of what is taken of a body that is too large already.
const (
	lingerMax      = 2 * time.Second
	lingerBytesMax = 256 << 20
)

func badRequest(message, cure string) *adminapi.Error {
	return &adminapi.Error{Code: "bad_request", Message: message, Cure: cure, Status: http.StatusBadRequest}
}
