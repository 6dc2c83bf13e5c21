package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"iop/edged/adminapi"
	"iop/fsm"
)

// config answers with the machine's own document: it holds no secret.
func (a *api) config(*http.Request) (any, error) {
	c := adminapi.Config{}
	a.Source.View(func(m *fsm.Machine) {
		c.Revision = uint64(m.Revision())
		if d := m.Document(); len(d) > 0 {
			c.Document = bytes.Clone(d)
		}
	})
	return c, nil
}

func (a *api) history(r *http.Request) (any, error) {
	h := adminapi.ConfigHistory{Revisions: []adminapi.ConfigRevision{}}
	if a.History == nil {
		return h, nil
	}
	list, whole, err := a.History(r.Context())
	if err != nil {
		return nil, &adminapi.Error{
			Code: "unreachable", Message: fmt.Sprintf("the history of the configuration can't be read: %v", err),
			Cure: "'iopctl debug check --data-dir DIR' tells what is wrong with the edge's log", Status: http.StatusServiceUnavailable,
		}
	}
	h.Revisions, h.Reading = append(h.Revisions, list...), !whole
	return h, nil
}

// revision answers with the document of one revision, as GET /config does with the newest.
func (a *api) revision(r *http.Request) (any, error) {
	n, err := strconv.ParseUint(r.PathValue("revision"), 10, 64)
	if err != nil {
		return nil, badRequest(fmt.Sprintf("%q is no revision", r.PathValue("revision")), "it is a number, as GET /config/history lists them")
	}
	if a.Revision != nil {
		if document, ok := a.Revision(r.Context(), fsm.Revision(n)); ok {
			return adminapi.Config{Revision: n, Document: document}, nil
		}
	}
	return nil, &adminapi.Error{
		Code: "not_found", Message: fmt.Sprintf("the document of revision %d is not kept", n),
		Cure: "GET /config/history (iopctl config history) lists the revisions that are", Status: http.StatusNotFound,
	}
}
