package configs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	aliasBytesMax = 256
	refBytesMax   = 128
)

var headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110, 5.6.2: token

func (c *Cluster) check(r *report) {
	providers := c.checkNodes(r)
	c.checkModels(r, providers)
	c.OpenAI.check(r)
	c.checkPrincipalModels(r, providers)
}

// directPrefix begins the names by which clients address one provider.
const directPrefix = "provider:"

// catalog has the providers of the configuration by id.
type catalog map[string]located

// located is a provider and where it stands.
type located struct {
	*Provider
	path string
}

func (c *Cluster) checkModels(r *report, providers catalog) {
	if len(c.Models) == 0 && !r.failed("models") {
		r.warn("models", "no model: every request is answered 404")
	}
	ids := newUniques(r)
	for i := range c.Models {
		m, at := &c.Models[i], indexPath("models", i)
		checkText(r, at+".id", m.ID, ModelIDMax)
		if strings.HasPrefix(m.ID, directPrefix) {
			r.problem(at+".id", "begins with "+directPrefix+", which addresses a provider directly", "choose another name")
		}
		ids.add(at+".id", m.ID, "the model "+shorten(m.ID), "name each model once; put all of its providers under one entry")
		if len(m.Providers) == 0 && !r.failed(at+".providers") {
			r.warn(at+".providers", "the model "+shorten(m.ID)+" has no provider: its requests are answered 503")
		}
		for _, id := range slices.Sorted(maps.Keys(m.Providers)) {
			m.checkCandidate(r, keyPath(at+".providers", id), id, providers)
		}
	}
}

func (m *Model) checkCandidate(r *report, path, id string, providers catalog) {
	p, ok := providers[id]
	if r.failed(path) || r.failedAt("nodes") || ok && r.failed(p.path+".models") {
		return
	}
	if !ok {
		r.problem(path, fmt.Sprintf("no node has a provider %s", shorten(id)), didYouMean(id, slices.Collect(maps.Keys(providers)), "add it under nodes[].providers, or correct the id"))
		return
	}
	if served := m.Providers[id]; !slices.Contains(p.Models, served) {
		r.problem(path, fmt.Sprintf("provider %s does not serve %s", shorten(id), shorten(served)), didYouMean(served, p.Models, "add it to that provider's models, or correct the name"))
	}
}

func didYouMean(name string, known []string, otherwise string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s? Else %s", near, otherwise)
	}
	return otherwise
}

func (o *OpenAI) check(r *report) {
	refs, hashes := newUniques(r), newUniques(r)
	for i := range o.PrincipalTokens {
		t, at := &o.PrincipalTokens[i], indexPath("openai.principal_tokens", i)
		checkName(r, at+".token_ref", t.TokenRef)
		checkText(r, at+".principal_ref", t.PrincipalRef, refBytesMax)
		checkText(r, at+".alias", t.Alias, aliasBytesMax)
		checkHash(r, at+".token_hash_sha256", t.TokenHashSHA256)
		refs.add(at+".token_ref", t.TokenRef, "the token_ref "+shorten(t.TokenRef), "give each token its own; several may share a principal_ref")
		hashes.add(at+".token_hash_sha256", t.TokenHashSHA256, "this token's hash", "remove one entry, or make a new token for it: 'iopctl tokens new'")
	}
	o.checkPrincipals(r)
	a := &o.ProviderAuth
	if !a.Enabled {
		return
	}
	for _, h := range []struct{ key, name string }{{"from_header", a.FromHeader}, {"target_header", a.TargetHeader}} {
		if path := "openai.provider_auth." + h.key; !headerPattern.MatchString(h.name) && !r.failed(path) {
			r.problem(path, shorten(h.name)+" is not the name of a header", "for example X-IOP-Provider-Authorization")
		}
	}
	for _, key := range []string{"Authorization", "X-Api-Key"} {
		if len(o.PrincipalTokens) > 0 && strings.EqualFold(a.FromHeader, key) && !r.failed("openai.provider_auth.from_header") {
			r.problem("openai.provider_auth.from_header", key+" carries the gateway's own key, which no backend may get", "choose another header, for example X-IOP-Provider-Authorization")
		}
	}
	if a.Scheme != "" && !headerPattern.MatchString(a.Scheme) && !r.failed("openai.provider_auth.scheme") {
		r.problem("openai.provider_auth.scheme", shorten(a.Scheme)+" is not an authorization scheme", "for example Bearer, or empty")
	}
}
