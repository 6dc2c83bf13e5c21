package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"iop/configs"
	"iop/edged/adminapi"
)

// joinBytesMax bounds the body of POST /nodes/{id}/join.
const joinBytesMax = 4 << 10

// addNode has a node added to what runs.
func (a *api) addNode(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := adminapi.NodeRequest{ID: query.Get("id"), Alias: query.Get("alias")}
	var err error
	if v := query.Get("dry_run"); v != "" {
		if q.DryRun, err = strconv.ParseBool(v); err != nil {
			a.fail(w, r, badRequest(fmt.Sprintf("the query has dry_run=%q", v), "it is true or false"))
			return
		}
	}
	if q.Fragment, err = io.ReadAll(http.MaxBytesReader(w, r.Body, configs.FileMax)); err != nil {
		a.fail(w, r, badRequest("the node did not arrive whole: "+err.Error(), fmt.Sprintf("send at most %d MiB", configs.FileMax>>20)))
		return
	}
	if q.ID == "" && len(q.Fragment) == 0 {
		a.fail(w, r, badRequest("neither an id nor a node was sent", "give ?id=…, or the node as YAML"))
		return
	}
	report, err := a.AddNode(r.Context(), q)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.reported(r, report, q.DryRun, "nodes add", "node", q.ID, "revision", report.Revision)
	writeJSON(w, refreshStatus(report.Result), report)
}

// addJoin has a join token taken.
func (a *api) addJoin(w http.ResponseWriter, r *http.Request) {
	q := adminapi.JoinRequest{}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, joinBytesMax))
	if err = errors.Join(err, json.Unmarshal(body, &q)); err != nil {
		a.fail(w, r, badRequest("the body is no join request: "+err.Error(), `send {"token_sha256": "…", "ttl_ms": 3600000}`))
		return
	}
	q.Node = r.PathValue("id")
	offer, err := a.AddJoin(r.Context(), q)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.changed(r, "join token", "node", q.Node)
	writeJSON(w, http.StatusOK, offer)
}
