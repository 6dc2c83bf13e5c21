package refresh

import (
	"cmp"
	"maps"
	"slices"

	"iop/configs"
	"iop/fsm"
)

func models(list []configs.Model) []fsm.ModelConfig {
	out := make([]fsm.ModelConfig, 0, len(list))
	for _, m := range list {
		candidates := make([]fsm.Candidate, 0, len(m.Providers))
		for _, provider := range slices.Sorted(maps.Keys(m.Providers)) {
			candidates = append(candidates, fsm.Candidate{Provider: fsm.ProviderID(provider), Served: m.Providers[provider]})
		}
		out = append(out, fsm.ModelConfig{ID: fsm.ModelID(m.ID), Candidates: candidates})
	}
	slices.SortFunc(out, func(a, b fsm.ModelConfig) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func catalog(list []configs.CatalogNode) ([]fsm.NodeID, []fsm.ProviderConfig) {
	nodes, providers := make([]fsm.NodeID, 0, len(list)), []fsm.ProviderConfig{}
	for i := range list {
		n := &list[i]
		nodes = append(nodes, fsm.NodeID(n.ID))
		adapters := make(map[string]configs.AdapterType, len(n.Adapters))
		for _, a := range n.Adapters {
			adapters[a.ID] = a.Type
		}
		for j := range n.Providers {
			p := &n.Providers[j]
			providers = append(providers, provider(p, fsm.NodeID(n.ID), adapters[p.Adapter]))
		}
	}
	slices.Sort(nodes)
	slices.SortFunc(providers, func(a, b fsm.ProviderConfig) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, providers
}

func provider(p *configs.Provider, node fsm.NodeID, adapter configs.AdapterType) fsm.ProviderConfig {
	long := fsm.LongUncounted
	if p.LongContextCapacity != nil {
		long = *p.LongContextCapacity
	}
	return fsm.ProviderConfig{
		ID:            fsm.ProviderID(p.ID),
		Node:          node,
		Capacity:      p.Capacity,
		LongCapacity:  long,
		ContextWindow: p.ContextWindowTokens,
		Priority:      p.Priority,
		Enabled:       p.Enabled,
		Can:           Can(p, adapter),
	}
}

// Can is what a provider can do behind an adapter of this type.
func Can(p *configs.Provider, adapter configs.AdapterType) fsm.Needs {
	return can(adapter) | beyond(p.Capable(adapter))
}

// can is what the node can make of a request through an adapter of this type.
func can(adapter configs.AdapterType) fsm.Needs {
	switch adapter {
	case configs.AdapterOpenAI, configs.AdapterOllama: // what Ollama's own API has no words for goes to its /v1
		return fsm.AllNeeds
	case configs.AdapterDemo:
		return fsm.NeedChat | fsm.NeedCompletions | fsm.NeedEmbeddings
	case configs.AdapterCLI:
		return fsm.NeedChat
	}
	return 0
}

// beyond is what a provider has that not every backend of its kind has.
func beyond(names []configs.Capability) (n fsm.Needs) {
	for _, name := range names {
		n |= needOf(name)
	}
	return n
}

func needOf(name configs.Capability) fsm.Needs {
	switch name {
	case configs.CapabilityResponses:
		return fsm.NeedResponses
	case configs.CapabilityMessages:
		return fsm.NeedMessages
	case configs.CapabilityRerank:
		return fsm.NeedRerank
	case configs.CapabilityScore:
		return fsm.NeedScore
	case configs.CapabilityAudio:
		return fsm.NeedAudio
	case configs.CapabilityImages:
		return fsm.NeedImages
	case configs.CapabilityTokenize:
		return fsm.NeedTokenize
	case configs.CapabilityModerations:
		return fsm.NeedModerations
	case configs.CapabilityOther:
		return fsm.NeedOther
	}
	return 0
}
