package admin

import (
	"bytes"
	"net/http"

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

func (a *api) history(*http.Request) (any, error) {
	h := adminapi.ConfigHistory{Revisions: []adminapi.ConfigRevision{}}
	if a.History != nil {
		h.Revisions = append(h.Revisions, a.History()...)
	}
	return h, nil
}
