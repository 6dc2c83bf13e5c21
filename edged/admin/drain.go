package admin

import (
	"encoding/json"
	"net/http"

	"iop/edged/adminapi"
	"iop/fsm"
)

// drainBytesMax bounds the body of a drain: two ids.
const drainBytesMax = 4 << 10

// drain drains a node or a provider, or ends that.
func (a *api) drain(w http.ResponseWriter, r *http.Request) {
	d, err := a.drained(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, d)
}

func (a *api) drained(w http.ResponseWriter, r *http.Request) (*adminapi.Drain, error) {
	var d adminapi.Drain
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, drainBytesMax))
	body.DisallowUnknownFields()
	if err := body.Decode(&d); err != nil || (d.Node == "") == (d.Provider == "") {
		return nil, badRequest("the body names no node and no provider, or both, or is no JSON",
			`send {"node": ID, "on": true}, or {"provider": ID, "on": true}; "on": false ends it`)
	}
	what, list := "node", "/nodes (iopctl nodes list)"
	cmd := &fsm.Drain{Node: fsm.NodeID(d.Node), Provider: fsm.ProviderID(d.Provider), On: d.On}
	if d.Provider != "" {
		what, list = "provider", "/providers (iopctl providers list)"
		s, _, err := a.snapshot()
		if err != nil {
			return nil, err
		}
		if cmd.Node = nodeOf(s, cmd.Provider); cmd.Node == "" {
			return nil, gone(what, d.Provider, list)
		}
	}
	known, err := a.Drain(r.Context(), cmd)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, gone(what, d.Node+d.Provider, list)
	}
	a.changed(r, "drain", "node", string(cmd.Node), "provider", d.Provider, "on", d.On)
	d.Node = string(cmd.Node)
	return &d, nil
}
