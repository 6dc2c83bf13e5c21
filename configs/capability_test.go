package configs

import (
	"slices"
	"testing"
)

// What a provider has beyond chat: what it declares, else what its type is known to have, and nothing behind an adapter
// that does not pass requests on.
func TestCapable(t *testing.T) {
	for _, c := range []struct {
		kind     ProviderType
		adapter  AdapterType
		declared []Capability
		want     []Capability
	}{
		{"llamacpp", AdapterOpenAI, nil, []Capability{"messages"}},
		{"vllm", AdapterOpenAI, nil, []Capability{"messages"}},
		{"ollama", AdapterOllama, nil, []Capability{"messages"}},
		{"mlx", AdapterOpenAI, nil, nil},
		{"llamacpp", AdapterOpenAI, []Capability{"chat"}, nil},
		{"vllm", AdapterOpenAI, []Capability{"rerank"}, []Capability{"rerank"}},
		{"demo", AdapterDemo, []Capability{"messages"}, nil},
		{"cli", AdapterCLI, nil, nil},
	} {
		p := Provider{Type: c.kind, Capabilities: c.declared}
		if got := p.Capable(c.adapter); !slices.Equal(got, c.want) {
			t.Errorf("%s behind %s with %v has %v, want %v", c.kind, c.adapter, c.declared, got, c.want)
		}
	}
}
