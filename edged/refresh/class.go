package refresh

import "strings"

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
}

// rules is the table of classes. What it does not name needs a restart, and a test fails: whoever adds a key to the schema
// decides here.
var rules = []rule{
	{"edge", RestartRequired, true}, // listeners, identity, cluster, data directory, TLS, control plane: read once, at the start

	{"provider_pool", Live, true},
	{"long_context_threshold_tokens", Live, false},

	{"models[]", Live, false},
	{"models[].id", Live, false},
	{"models[].providers", Live, true},
	{"models[].generation", Live, true},

	{"nodes[]", RestartRequired, false},
	{"nodes[].id", RestartRequired, false},
	{"nodes[].alias", RestartRequired, false},
	{"nodes[].token_hash_sha256", RestartRequired, false},
	{"nodes[].adapters", RestartRequired, true},
	{"nodes[].runtime", Live, true}, // legacy: nobody reads it

	// A provider that comes or goes brings or takes its type and adapter, so it is structural; `enabled` is the live way.
	{"nodes[].providers[]", RestartRequired, false},
	{"nodes[].providers[].id", RestartRequired, false},
	{"nodes[].providers[].type", RestartRequired, false},
	{"nodes[].providers[].label", RestartRequired, false}, // another word for the type
	{"nodes[].providers[].adapter", RestartRequired, false},
	{"nodes[].providers[].models", Live, false},
	{"nodes[].providers[].capacity", Live, false},
	{"nodes[].providers[].long_context_capacity", Live, false},
	{"nodes[].providers[].context_window_tokens", Live, false},
	{"nodes[].providers[].total_context_tokens", Live, false}, // only bounds the two above it
	{"nodes[].providers[].priority", Live, false},
	{"nodes[].providers[].enabled", Live, false},
	{"nodes[].providers[].health_check", Live, true},

	{"openai.principal_tokens", RestartRequired, true},
	{"openai.provider_auth", RestartRequired, true}, // whose key is sent where: with the tokens
	{"openai.usage", RestartRequired, true},
}

// classes is rules, to look up. A table of 30 is found fastest by walking up from the place.
type classes struct {
	exact map[string]Class
	below map[string]Class
}

func newClasses() *classes {
	c := &classes{exact: map[string]Class{}, below: map[string]Class{}}
	for _, r := range rules {
		c.exact[r.at] = r.class
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

// whole tells that all below the place has one class.
func (c *classes) whole(place string) (Class, bool) {
	class, ok := c.below[place]
	return class, ok
}
