package configs

import "strings"

func (o *OpenAI) checkPrincipals(r *report) {
	refs := newUniques(r)
	known := map[string]bool{}
	for i := range o.PrincipalTokens {
		known[o.PrincipalTokens[i].PrincipalRef] = true
	}
	for i := range o.Principals {
		p, at := &o.Principals[i], indexPath("openai.principals", i)
		checkText(r, at+".ref", p.Ref, refBytesMax)
		refs.add(at+".ref", p.Ref, "the principal "+shorten(p.Ref), "say all that holds for it in one entry")
		if p.Ref != "" && !known[p.Ref] {
			r.warn(at+".ref", "no token belongs to "+shorten(p.Ref)+"; add one to openai.principal_tokens, or correct the name")
		}
	}
}

// checkPrincipalModels: a principal's models exist. A provider is named by its id alone, whatever it serves.
func (c *Cluster) checkPrincipalModels(r *report, providers catalog) {
	models := map[string]bool{}
	var names []string
	for i := range c.Models {
		models[c.Models[i].ID] = true
		names = append(names, c.Models[i].ID)
	}
	for i := range c.OpenAI.Principals {
		for j, id := range c.OpenAI.Principals[i].Models {
			path := indexPath(indexPath("openai.principals", i)+".models", j)
			provider, direct := strings.CutPrefix(id, directPrefix)
			if _, there := providers[provider]; models[id] || direct && there || r.failedAt("nodes") || r.failedAt("models") {
				continue
			}
			r.problem(path, "there is no model "+shorten(id), didYouMean(id, names, "add it under models, or correct the name"))
		}
	}
}
