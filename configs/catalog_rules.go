package configs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

func (c *Cluster) checkNodes(r *report) catalog {
	providers, ids, providerIDs := catalog{}, newUniques(r), newUniques(r)
	for i := range c.Nodes {
		n, at := &c.Nodes[i], indexPath("nodes", i)
		checkName(r, at+".id", n.ID)
		checkText(r, at+".alias", n.Alias, aliasBytesMax)
		checkHash(r, at+".token_hash_sha256", n.TokenHashSHA256)
		ids.add(at+".id", n.ID, "the node "+shorten(n.ID), "name each node once")
		adapters := n.checkAdapters(r, at)
		for j := range n.Providers {
			p, at := &n.Providers[j], indexPath(at+".providers", j)
			p.check(r, at)
			p.checkAdapter(r, at, n, adapters)
			providerIDs.add(at+".id", p.ID, "the provider "+shorten(p.ID), "provider ids are unique over all nodes: rename one")
			if _, ok := providers[p.ID]; !ok {
				providers[p.ID] = located{p, at}
			}
		}
		if r.set[at+".runtime.concurrency"] {
			r.warn(at+".runtime.concurrency", "legacy key, kept but gates nothing: set capacity of the providers and remove it")
		}
	}
	return providers
}

func (n *CatalogNode) checkAdapters(r *report, at string) map[string]*Adapter {
	out, ids := map[string]*Adapter{}, newUniques(r)
	for i := range n.Adapters {
		a, at := &n.Adapters[i], indexPath(at+".adapters", i)
		checkName(r, at+".id", a.ID)
		ids.add(at+".id", a.ID, "the adapter "+shorten(a.ID), "name each adapter of a node once")
		a.check(r, at)
		if out[a.ID] == nil {
			out[a.ID] = a
		}
	}
	return out
}

func (a *Adapter) check(r *report, at string) {
	if a.Type == "" || r.failed(at+".type") {
		return
	}
	fields := []struct {
		key    string
		given  bool
		needed bool
		types  []AdapterType
	}{
		{"base_url", a.BaseURL != "", true, []AdapterType{AdapterOpenAI, AdapterOllama}},
		{"api_key_env", a.APIKeyEnv != "", false, []AdapterType{AdapterOpenAI, AdapterOllama}},
		{"command", len(a.Command) > 0, true, []AdapterType{AdapterCLI}},
		{"cli", a.CLI != nil, false, []AdapterType{AdapterCLI}},
		{"ollama", a.Ollama != nil, false, []AdapterType{AdapterOllama}},
		{"demo", a.Demo != nil, false, []AdapterType{AdapterDemo}},
	}
	for _, f := range fields {
		path, fits := at+"."+f.key, slices.Contains(f.types, a.Type)
		switch {
		case r.failed(path):
		case f.given && !fits:
			r.problem(path, fmt.Sprintf("means nothing to an adapter of type %s", a.Type), "remove it, or correct the type")
		case !f.given && fits && f.needed:
			r.problem(path, fmt.Sprintf("is missing; an adapter of type %s needs it", a.Type), "see configs/examples/edge.yaml")
		}
	}
	checkBaseURL(r, at+".base_url", a.BaseURL)
	if path := at + ".api_key_env"; a.APIKeyEnv != "" && !envName.MatchString(a.APIKeyEnv) && !r.failed(path) {
		r.problem(path, "is not the name of an environment variable", "write the name only, for example MLX_KEY; the node holds the key itself")
	}
	if len(a.Command) > 0 && strings.TrimSpace(a.Command[0]) == "" && !r.failed(at+".command") {
		r.problem(at+".command", "begins with an empty text", "name the program first")
	}
	a.checkAgent(r, at)
	if a.Ollama != nil {
		a.Ollama.check(r, at+".ollama")
	}
}

// checkBaseURL never shows the URL, which may hold a password.
func checkBaseURL(r *report, path, text string) {
	if text == "" || r.failed(path) {
		return
	}
	u, err := url.Parse(text)
	cure := "write http://host:port/v1"
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		r.problem(path, "is not an http or https URL", cure)
	case u.Hostname() == "":
		r.problem(path, "the URL has no host", cure)
	case u.User != nil:
		r.problem(path, "the URL holds a user or password", "remove it; "+rawSecretCure)
	case u.RawQuery != "" || u.Fragment != "":
		r.problem(path, "the URL has a query or fragment", cure)
	}
}

func (p *Provider) check(r *report, at string) {
	checkName(r, at+".id", p.ID)
	checkText(r, at+".label", p.Label, refBytesMax)
	models := newUniques(r)
	for i, name := range p.Models {
		path := indexPath(at+".models", i)
		if name == "" && !r.failed(path) {
			r.problem(path, "is an empty name", "remove it")
		}
		checkText(r, path, name, ModelIDMax)
		models.add(path, name, "the model "+shorten(name), "name each once")
	}
	p.checkCapacity(r, at)
	p.checkContext(r, at)
	p.checkCapabilities(r, at)
	if h := p.HealthCheck; h != nil && h.Path != "" && !r.failed(at+".health_check.path") {
		if u, err := url.Parse(h.Path); err != nil || !strings.HasPrefix(h.Path, "/") || u.Host != "" {
			r.problem(at+".health_check.path", "is not a path", "begin with /, for example /health")
		}
	}
}

func (p *Provider) checkCapacity(r *report, at string) {
	path := at + ".capacity"
	if p.Capacity == 0 && !r.failed(path) && !r.guessed[path] && p.Type != ProviderCLI && p.Type != "" {
		r.problem(path, "is missing", "say how many requests the backend takes at the same time, at least 1; only type cli may leave it out (unlimited)")
	}
}

func (p *Provider) checkContext(r *report, at string) {
	if p.LongContextCapacity == nil {
		return
	}
	path, long := at+".long_context_capacity", *p.LongContextCapacity
	if r.failed(path) {
		return
	}
	if p.Capacity > 0 && long > p.Capacity && !r.failed(at+".capacity") {
		r.problem(path, fmt.Sprintf("%d is more than capacity %d", long, p.Capacity), "a long request takes a normal slot too: lower it, or raise capacity")
	}
	if long < 1 || r.failed(at+".context_window_tokens") {
		return
	}
	if p.ContextWindowTokens == 0 {
		r.problem(path, "needs context_window_tokens", "give context_window_tokens, the longest input of one request")
		return
	}
	if total := p.TotalContextTokens; total > 0 && p.ContextWindowTokens > total/int64(long) {
		r.problem(at+".total_context_tokens",
			fmt.Sprintf("%d is less than context_window_tokens %d x long_context_capacity %d", total, p.ContextWindowTokens, long),
			"lower long_context_capacity or context_window_tokens, or raise this to what the backend really has")
	}
}

func (p *Provider) checkAdapter(r *report, at string, n *CatalogNode, adapters map[string]*Adapter) {
	path := at + ".adapter"
	if p.Adapter == "" || r.failed(path) {
		return
	}
	a, ok := adapters[p.Adapter]
	if !ok && r.failed(at[:strings.LastIndex(at, ".")]+".adapters") {
		return // likely the one meant
	}
	if !ok {
		known := make([]string, 0, len(n.Adapters))
		for _, x := range n.Adapters {
			known = append(known, x.ID)
		}
		r.problem(path, fmt.Sprintf("node %s has no adapter %s", shorten(n.ID), shorten(p.Adapter)), didYouMean(p.Adapter, known, "add it to the node's adapters"))
		return
	}
	if p.Type == "" || a.Type == "" || r.failed(at+".type") {
		return
	}
	if want := p.Type.Adapters(); !slices.Contains(want, a.Type) && slices.Contains(adapterTypes, a.Type) {
		r.problem(path, fmt.Sprintf("adapter %s is of type %s, which cannot reach a provider of type %s", shorten(a.ID), a.Type, p.Type),
			fmt.Sprintf("give it an adapter of type %s, or correct one of the types", want[0]))
	}
	if p.Type == ProviderOllama && a.Type == AdapterOpenAI {
		r.warn(path, fmt.Sprintf("over adapter %s Ollama is asked by its /v1, which cuts a prompt that is too long without a word and loads models with a context of its own; "+
			"an adapter of type ollama refuses such a prompt (base_url without /v1)", shorten(a.ID)))
	}
}
