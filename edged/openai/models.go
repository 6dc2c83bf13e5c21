package openai

import (
	"net/http"
	"net/url"
	"sort"
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

// listModels is the answer of GET /v1/models, by id.
func listModels(models map[string]*model) []byte {
	ids := make([]string, 0, len(models))
	for id := range models {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	b := []byte(`{"object":"list","data":[`)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = models[id].json(b)
	}
	return append(b, "]}\n"...)
}

// serveModel answers GET /v1/models/{id}. The id may hold slashes and colons, plain or percent-encoded.
func (s *Server) serveModel(w http.ResponseWriter, r *http.Request, c *catalog) *failure {
	id, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), modelsPath))
	if err != nil {
		return &failure{kind: kindMalformed, message: "The model's id is not percent-encoded correctly."}
	}
	m := c.models[id]
	if m == nil {
		return noModel(id)
	}
	writeJSON(w, http.StatusOK, append(m.json(nil), '\n'))
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
