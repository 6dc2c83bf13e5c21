package admin

import (
	"maps"
	"net/http"
	"slices"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

// provider shows one provider, and asks its node what the backend tells of itself.
func (a *api) provider(r *http.Request) (any, error) {
	id := r.PathValue("id")
	s, names, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	for _, p := range showProviders(s, names) {
		if p.ID != id {
			continue
		}
		out := &adminapi.ProviderDetail{Provider: p, Models: []string{}}
		if c, ok := names.providers[fsm.ProviderID(id)]; ok {
			out.Adapter, out.AdapterType = c.provider.Adapter, string(c.adapter)
			out.Models = append(out.Models, c.provider.Models...)
			if h := c.provider.HealthCheck; h != nil {
				out.HealthPath, out.HealthEvery = h.Path, int64(h.IntervalMS)
			}
		}
		out.Backend = a.backend(r, p)
		return out, nil
	}
	return nil, gone("provider", id, "/providers (iopctl providers list)")
}

func (a *api) backend(r *http.Request, p adminapi.Provider) *adminapi.Backend {
	var b *adminapi.Backend
	if a.Backend == nil {
		b = &adminapi.Backend{Error: "this edge asks no backends"}
	} else {
		b = a.Backend(r.Context(), fsm.NodeID(p.Node), fsm.ProviderID(p.ID))
	}
	if b.Numbers == nil {
		b.Numbers = map[string]float64{}
	}
	if b.Words == nil {
		b.Words = map[string]string{}
	}
	b.Models, b.Sources = append([]string{}, b.Models...), append([]string{}, b.Sources...)
	return b
}

// configured is a provider as the configuration has it.
type configured struct {
	provider configs.Provider
	adapter  configs.AdapterType
}

// providersOf are those of a node, by id.
func providersOf(n *configs.CatalogNode) map[fsm.ProviderID]configured {
	adapters := make(map[string]configs.AdapterType, len(n.Adapters))
	for _, a := range n.Adapters {
		adapters[a.ID] = a.Type
	}
	out := make(map[fsm.ProviderID]configured, len(n.Providers))
	for _, p := range n.Providers {
		out[fsm.ProviderID(p.ID)] = configured{p, adapters[p.Adapter]}
	}
	return out
}

// label is what the operator calls the kind of backend, where that is not just its type.
func (n *names) label(id fsm.ProviderID) string {
	if c, ok := n.providers[id]; ok && c.provider.Label != string(c.provider.Type) {
		return c.provider.Label
	}
	return ""
}

// nodeOf is the node of a provider; "" = there is none of that name.
func nodeOf(s fsm.Snapshot, id fsm.ProviderID) fsm.NodeID {
	i := slices.IndexFunc(s.Providers, func(p fsm.ProviderView) bool { return p.ID == id })
	if i < 0 {
		return ""
	}
	return s.Providers[i].Node
}

func (n *names) add(node *configs.CatalogNode) {
	maps.Copy(n.providers, providersOf(node))
}
