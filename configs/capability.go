package configs

import (
	"slices"
	"strings"
)

// Capability is a route that a backend has beyond chat, completions and embeddings.
type Capability = string

// The capabilities that providers[].capabilities may name.
const (
	CapabilityChat        Capability = "chat" // every provider has it: named alone, the list takes away all that the type has beyond
	CapabilityResponses   Capability = "responses"
	CapabilityMessages    Capability = "messages"
	CapabilityRerank      Capability = "rerank"
	CapabilityScore       Capability = "score"
	CapabilityAudio       Capability = "audio"
	CapabilityImages      Capability = "images"
	CapabilityTokenize    Capability = "tokenize"
	CapabilityModerations Capability = "moderations"
	CapabilityOther       Capability = "other"
)

// Capabilities gives the names that providers[].capabilities may have.
func Capabilities() []Capability {
	return []Capability{
		CapabilityChat, CapabilityResponses, CapabilityMessages, CapabilityRerank, CapabilityScore, CapabilityAudio,
		CapabilityImages, CapabilityTokenize, CapabilityModerations, CapabilityOther,
	}
}

// Capable gives what a provider has beyond chat, completions and embeddings, behind an adapter of this type: what it
// declares, or else what servers of its type are known to have. Only adapters that pass requests on have any.
func (p *Provider) Capable(adapter AdapterType) []Capability {
	switch {
	case adapter != AdapterOpenAI && adapter != AdapterOllama:
		return nil
	case len(p.Capabilities) > 0:
		return slices.DeleteFunc(slices.Clone(p.Capabilities), func(c Capability) bool { return c == CapabilityChat })
	}
	switch p.Type {
	case "llamacpp", "vllm", ProviderOllama:
		return []Capability{CapabilityMessages}
	}
	return nil
}

func (p *Provider) checkCapabilities(r *report, at string) {
	names := newUniques(r)
	for i, name := range p.Capabilities {
		path := indexPath(at+".capabilities", i)
		if !slices.Contains(Capabilities(), name) && !r.failed(path) {
			r.problem(path, shorten(name)+" is no capability", "name one of "+strings.Join(Capabilities(), ", "))
		}
		names.add(path, name, "the capability "+shorten(name), "name each once")
	}
}
