package edged

import (
	"strconv"

	"iop/configs"
	"iop/proto/nodepb"
)

// payload is what a node is told of the configuration: how to reach its backends, and what it offers.
func payload(n *configs.CatalogNode) *nodepb.NodeConfigPayload {
	p := &nodepb.NodeConfigPayload{}
	for i := range n.Adapters {
		p.Adapters = append(p.Adapters, adapterPayload(&n.Adapters[i]))
	}
	for i := range n.Providers {
		p.Providers = append(p.Providers, providerPayload(&n.Providers[i]))
	}
	return p
}

func adapterPayload(a *configs.Adapter) *nodepb.AdapterConfig {
	out := &nodepb.AdapterConfig{
		Id: a.ID, Type: string(a.Type), BaseUrl: a.BaseURL, ApiKeyEnv: a.APIKeyEnv, Command: a.Command,
	}
	if a.Type == configs.AdapterCLI {
		out.Settings = agentSettings(a.Agent())
	}
	if o := a.Ollama; o != nil {
		out.Settings = map[string]string{"keep_alive": o.KeepAlive, "think": string(o.Think)}
		if o.NumCtx > 0 {
			out.Settings["num_ctx"] = strconv.FormatInt(o.NumCtx, 10)
		}
	}
	if d := a.Demo; d != nil {
		out.Settings = map[string]string{
			"words":            strconv.Itoa(d.Words),
			"word_interval_ms": strconv.FormatInt(int64(d.WordIntervalMS), 10),
			"first_token_ms":   strconv.FormatInt(int64(d.FirstTokenMS), 10),
		}
	}
	return out
}

func providerPayload(p *configs.Provider) *nodepb.ProviderConfig {
	out := &nodepb.ProviderConfig{
		Id: p.ID, Type: string(p.Type), Adapter: p.Adapter, Models: p.Models, Capacity: uint32(p.Capacity),
		Enabled: p.Enabled, Label: p.Label, ContextWindowTokens: uint64(max(p.ContextWindowTokens, 0)),
	}
	if h := p.HealthCheck; h != nil {
		out.HealthCheck = &nodepb.HealthCheck{Path: h.Path, IntervalMs: uint64(h.IntervalMS)}
	}
	return out
}
