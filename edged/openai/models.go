package openai

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const modelsPath = "/v1/models/"

func (m *model) json(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendQuoted(b, string(m.id))
	b = append(b, `,"object":"model","created":`...)
	b = strconv.AppendInt(b, m.created, 10)
	return append(b, `,"owned_by":"iop"}`...)
}

// serveModel answers GET /v1/models/{id}. The id may hold slashes and colons, plain or percent-encoded.
func (s *Server) serveModel(w http.ResponseWriter, r *http.Request, c *catalog, who caller) *failure {
	id, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), modelsPath))
	if err != nil {
		return &failure{kind: kindMalformed, message: "The model's id is not percent-encoded correctly."}
	}
	m := c.models[id]
	if m == nil || !c.may(who, m) {
		return noModel(id)
	}
	writeJSON(w, http.StatusOK, append(c.modelJSON(nil, m, c.allowed[who.principal]), '\n'))
	return nil
}

// noModel names the model that was asked for, shortened.
func noModel(id string) *failure {
	if len(id) > 200 {
		id = id[:200] + "…"
	}
	return &failure{kind: kindNoModel, param: "model", dispatched: DispatchedNo, message: "The model " +
		strconv.Quote(id) + " does not exist. GET /v1/models lists the models there are."}
}
