package openai

import (
	"slices"
	"sort"
	"strings"
)

// allowed is what a principal may use and see.
type allowed struct {
	models   map[string]bool // nil = all
	operator bool
	list     []byte // answer of GET /v1/models
}

func (c *catalog) newAllowed(p *Principal) *allowed {
	a := &allowed{operator: p.Operator}
	if len(p.Models) > 0 {
		a.models = make(map[string]bool, len(p.Models))
		for _, name := range p.Models {
			a.models[name] = true
		}
	}
	a.list = c.listModels(a)
	return a
}

// may tells whether the caller may use the model. The machine has the last word; this one keeps it from learning, by the
// kind of the refusal, that there is such a model.
func (c *catalog) may(who caller, m *model) bool {
	a := c.allowed[who.principal]
	return a == nil || a.models == nil || a.models[string(m.id)]
}

// listModels is the answer of GET /v1/models, by id; a = nil is that of one who may use all of them.
func (c *catalog) listModels(a *allowed) []byte {
	ids := make([]string, 0, len(c.models))
	for id := range c.models {
		if a == nil || a.models == nil || a.models[id] {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	b := []byte(`{"object":"list","data":[`)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.modelJSON(b, c.models[id], a)
	}
	return append(b, "]}\n"...)
}

// modelJSON appends a model, for an operator with what serves it.
func (c *catalog) modelJSON(b []byte, m *model, a *allowed) []byte {
	b = m.json(b)
	if a == nil || !a.operator {
		return b
	}
	b = append(b[:len(b)-1], `,"iop":{"candidates":[`...)
	for i, cand := range m.candidates {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"provider":`...)
		b = appendQuoted(b, cand.Provider)
		b = append(b, `,"served":`...)
		b = appendQuoted(b, cand.Served)
		b = append(b, '}')
	}
	return append(b, "]}}"...)
}

// inOrder gives candidates by the ids of their providers.
func inOrder(list []Candidate) []Candidate {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Candidate) int { return strings.Compare(a.Provider, b.Provider) })
	return list
}
