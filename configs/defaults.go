package configs

import "strings"

func (p *Provider) setDefaults() { p.Enabled = true }

func (h *HealthCheck) setDefaults() { h.IntervalMS = 5000 }

func (d *Demo) setDefaults() { *d = Demo{Words: 40, WordIntervalMS: 25, FirstTokenMS: 150} }

// normalise gives each thing its one spelling, after a load: what may be said in two ways reads the same from here on.
func (c *Cluster) normalise() {
	c.fillLists()
	if c.ProviderPool.MaxQueue == 0 {
		c.ProviderPool.MaxQueue = MaxQueueDefault
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.TokenHashSHA256 = strings.ToLower(n.TokenHashSHA256)
		for j := range n.Adapters {
			n.Adapters[j].normalise()
		}
		for j := range n.Providers {
			if p := &n.Providers[j]; p.Label == "" {
				p.Label = string(p.Type)
			}
		}
	}
	for i := range c.OpenAI.PrincipalTokens {
		t := &c.OpenAI.PrincipalTokens[i]
		t.TokenHashSHA256 = strings.ToLower(t.TokenHashSHA256)
	}
}

// normalise turns the type of an OpenAI-compatible server into AdapterOpenAI, and gives a demo its pace.
func (a *Adapter) normalise() {
	if t, ok := adapterAlias[a.Type]; ok {
		a.Type = t
	}
	if a.Type == AdapterDemo && a.Demo == nil {
		a.Demo = &Demo{}
		a.Demo.setDefaults()
	}
}

var adapterAlias = map[AdapterType]AdapterType{
	"vllm": AdapterOpenAI, "llamacpp": AdapterOpenAI, "mlx": AdapterOpenAI, "lemonade": AdapterOpenAI, "lmstudio": AdapterOpenAI,
	"seulgivibe_claude": AdapterOpenAI, "seulgivibe_openai": AdapterOpenAI,
}

var adapterTypes = []AdapterType{AdapterOpenAI, AdapterOllama, AdapterCLI, AdapterDemo}

// Adapters gives the adapter types that can reach a provider of this type.
func (t ProviderType) Adapters() []AdapterType {
	switch t {
	case ProviderCLI:
		return []AdapterType{AdapterCLI}
	case ProviderDemo:
		return []AdapterType{AdapterDemo}
	case ProviderOllama:
		return []AdapterType{AdapterOllama, AdapterOpenAI}
	}
	return []AdapterType{AdapterOpenAI}
}
