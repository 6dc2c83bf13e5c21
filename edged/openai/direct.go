package openai

import (
	"slices"
	"strconv"
	"strings"

	"iop/fsm"
)

// directPrefix begins the model name of a request for one provider beside the queue: provider:ID or provider:ID/SERVED.
const directPrefix = "provider:"

// directModels gives the names by which the providers without a bound can be addressed, ready for use. They are as many
// as the configuration has served names, and no list of models shows them.
func directModels(providers []Provider, old map[string]*model) map[string]*model {
	out := map[string]*model{}
	for i := range providers {
		p := &providers[i]
		if !p.Unlimited {
			continue
		}
		short := directPrefix + string(p.ID)
		add := func(name, served string) {
			m := &model{id: fsm.ModelID(short), name: name, provider: p.ID, served: served, scale: &scale{}}
			if was := old[name]; was != nil {
				m.scale = was.scale
			}
			out[name] = m
		}
		add(short, string(p.ID)) // it names no model, so the backend has one of its own
		for j, served := range p.Models {
			if j == 0 {
				add(short, served)
			}
			add(short+"/"+served, served)
		}
	}
	return out
}

// find returns what a model's name stands for, nil if there is none. A configured model goes before a provider.
func (c *catalog) find(name string) *model {
	if m := c.models[name]; m != nil {
		return m
	}
	return c.direct[name]
}

// noDirect tells why a provider can't be addressed by this name; nil if the name is no such address.
func (c *catalog) noDirect(name string) *failure {
	rest, ok := strings.CutPrefix(name, directPrefix)
	if !ok {
		return nil
	}
	f := &failure{kind: kindNoModel, param: "model", dispatched: DispatchedNo}
	id, served, _ := strings.Cut(rest, "/")
	p, known := c.providers[fsm.ProviderID(id)]
	switch {
	case !known:
		f.message = "There is no provider " + strconv.Quote(shown(id)) + ". GET /v1/models lists the models there are; ask the operator which providers can be addressed directly."
	case !p.Unlimited:
		f.message = "The provider " + strconv.Quote(shown(id)) + " has a bounded capacity: a request for it alone would pass by those who wait. Use one of its models; GET /v1/models lists them."
	case !slices.Contains(p.Models, served):
		f.message = "The provider " + strconv.Quote(shown(id)) + " serves no model " + strconv.Quote(shown(served)) + ". Leave the name after the slash out, or use one that the operator has listed there."
	}
	return f
}

// direct puts the words of a refusal right for a request that was meant for one provider.
func (m *model) direct(f *failure, code string) {
	if m.provider == "" {
		return
	}
	p := strconv.Quote(string(m.provider))
	switch code {
	case "unavailable":
		f.message = "The provider " + p + " is not connected and healthy, and a request for it alone does not wait. Try again later; the operator sees the cause with 'iopctl providers list -o wide'."
	case "draining":
		f.message = "The provider " + p + " is being drained for maintenance. Try again later."
	case "model_not_found":
		f.message = "The provider " + p + " can no longer be addressed directly."
	case "context_too_long":
		f.message = "The input is too long for the provider " + p + ". Shorten it, or use a model with a longer context."
	case "unsupported":
		f.message = "The provider " + p + " can't serve this kind of request. Use another route."
	}
}
