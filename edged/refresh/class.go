package refresh

import (
	"reflect"
	"slices"
	"strings"

	"iop/configs"
)

// Class tells whether a change takes effect while everything runs.
type Class string

// The classes.
const (
	Live            Class = "live"
	RestartRequired Class = "restart_required"
)

// rule classifies the changes of one place of the schema. [] stands for the entries of a list by their id, or of a map by
// their key: nodes[] is a node that comes or goes, nodes[].alias a value of one that stays.
type rule struct {
	at    string
	class Class
	below bool // all that is below it as well
	fresh bool // an entry that is new is live all the same
}

// rules is the table of classes. What it does not name needs a restart, and a test fails: whoever adds a key to the schema
// decides here.
var rules = []rule{
	{at: "edge", class: RestartRequired, below: true}, // listeners, identity, cluster, data directory, TLS, control plane: read once, at the start

	{at: "provider_pool", class: Live, below: true},
	{at: "responses", class: Live, below: true},
	{at: "long_context_threshold_tokens", class: Live},

	{at: "models[]", class: Live},
	{at: "models[].id", class: Live},
	{at: "models[].providers", class: Live, below: true},
	{at: "models[].generation", class: Live, below: true},

	// A node that is new brings all of its own: nothing that runs depends on it. One that goes, or changes, is another matter.
	{at: "nodes[]", class: RestartRequired, fresh: true},
	{at: "nodes[].id", class: RestartRequired},
	{at: "nodes[].alias", class: RestartRequired},
	{at: "nodes[].token_hash_sha256", class: Live}, // links that were made with the old token end (nodelink)
	{at: "nodes[].adapters", class: RestartRequired, below: true},
	{at: "nodes[].runtime", class: Live, below: true}, // legacy: nobody reads it

	// A provider that comes or goes brings or takes its type and adapter, so it is structural; `enabled` is the live way.
	{at: "nodes[].providers[]", class: RestartRequired},
	{at: "nodes[].providers[].id", class: RestartRequired},
	{at: "nodes[].providers[].type", class: RestartRequired},
	{at: "nodes[].providers[].label", class: RestartRequired}, // another word for the type
	{at: "nodes[].providers[].adapter", class: RestartRequired},
	{at: "nodes[].providers[].models", class: Live},
	{at: "nodes[].providers[].capabilities", class: Live},
	{at: "nodes[].providers[].capacity", class: Live},
	{at: "nodes[].providers[].long_context_capacity", class: Live},
	{at: "nodes[].providers[].context_window_tokens", class: Live},
	{at: "nodes[].providers[].total_context_tokens", class: Live}, // only bounds the two above it
	{at: "nodes[].providers[].priority", class: Live},
	{at: "nodes[].providers[].enabled", class: Live},
	{at: "nodes[].providers[].health_check", class: Live, below: true},

	{at: "openai.principal_tokens", class: RestartRequired, below: true},
	{at: "openai.principals[]", class: Live},
	{at: "openai.principals[].ref", class: Live},
	{at: "openai.principals[].models", class: Live, below: true},
	{at: "openai.principals[].max_in_flight", class: Live},
	{at: "openai.principals[].max_queued", class: Live},
	{at: "openai.principals[].operator", class: Live},
	{at: "openai.provider_auth", class: RestartRequired, below: true}, // whose key is sent where: with the tokens
	{at: "openai.usage", class: RestartRequired, below: true},
}

// classes is rules, to look up. A table of 30 is found fastest by walking up from the place.
type classes struct {
	exact map[string]Class
	below map[string]Class
	fresh map[string]bool
}

func newClasses() *classes {
	c := &classes{exact: map[string]Class{}, below: map[string]Class{}, fresh: map[string]bool{}}
	for _, r := range rules {
		c.exact[r.at] = r.class
		c.fresh[r.at] = r.fresh
		if r.below {
			c.below[r.at] = r.class
		}
	}
	return c
}

// of gives the class of a place; known tells whether a rule names it.
func (c *classes) of(place string) (class Class, known bool) {
	if class, known = c.exact[place]; known {
		return class, true
	}
	for at := place; at != ""; {
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			break
		}
		at = at[:cut]
		if class, known = c.below[at]; known {
			return class, true
		}
	}
	return RestartRequired, false
}

// ofNew gives the class of an entry that is not in the old list.
func (c *classes) ofNew(place string, old, entry reflect.Value) Class {
	if c.fresh[place] && !takesOver(old, entry) {
		return Live
	}
	class, _ := c.of(place)
	return class
}

// takesOver tells whether a node that is new has a provider of one that is there: moving it is structural.
func takesOver(old, entry reflect.Value) bool {
	was, _ := old.Interface().([]configs.CatalogNode)
	is, _ := entry.Interface().(configs.CatalogNode)
	for i := range was {
		for _, p := range was[i].Providers {
			if slices.ContainsFunc(is.Providers, func(q configs.Provider) bool { return q.ID == p.ID }) {
				return true
			}
		}
	}
	return false
}

// whole tells that all below the place has one class.
func (c *classes) whole(place string) (Class, bool) {
	class, ok := c.below[place]
	return class, ok
}
