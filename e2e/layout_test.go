package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// layout describes a system: what the edge file says. Zero values are the quick ones that most tests want.
type layout struct {
	providers []provider
	models    map[string][]string // external model: providers
	queue     int                 // 0 = 64
	timeout   time.Duration       // of the queue; 0 = none
	grace     time.Duration       // 0 = 2 s
	reattach  time.Duration       // 0 = 30 s
	fence     time.Duration       // 0 = 10 s
	heartbeat time.Duration       // 0 = 500 ms
	missed    int                 // missed heartbeats are a loss; 0 = 3
	threshold int                 // tokens of a long request; 0 = 1,000
	tokens    map[string]string   // token_ref: raw token of a client; none = open
	throttled bool                // nodes reach the edge through a cut.Proxy
	keepalive time.Duration       // of queued streams; 0 = off
	stop      time.Duration       // stop_timeout; 0 = 10 s
	log       string              // level; "" = debug
	format    string              // of logs; "" = text
	node      map[string]any      // more of the nodes' own part
	edge      map[string]any      // more of the replica's own part
	cluster   map[string]any      // more of the cluster part
	edits     map[string]any      // path in the file, as in nodes[0].alias: another value for it
	profile   *profile            // a whole file instead of all above
}

// provider is a backend's entry. Its node is made from its name.
type provider struct {
	id       string
	node     string // "" = n1
	url      string // base URL of the backend; "" = the demo adapter
	kind     string // type; "" = openai_compat
	capacity int    // 0 = 1
	long     int    // long slots; 0 = not counted, negative = explicitly none
	window   int    // tokens; 0 = not stated
	priority int
	disabled bool
	demo     map[string]any
	command  []string       // of a cli provider, which has no capacity
	cli      map[string]any // how it is run
	check    time.Duration  // interval of GET /health; 0 = not asked
	serves   string         // the model's name there; "" = served(id)
}

func (p *provider) nodeID() string {
	if p.node == "" {
		return "n1"
	}
	return p.node
}

// served is the model's name at a provider: unlike every external one.
func served(provider string) string { return "served/" + provider }

func (l *layout) servedBy(provider string) string {
	for i := range l.providers {
		if p := &l.providers[i]; p.id == provider && p.serves != "" {
			return p.serves
		}
	}
	return served(provider)
}

func nodeToken(node string) string { return "secret-of-" + node }

func sha(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// nodes are the ids of the layout's nodes, sorted.
func (l *layout) nodes() []string {
	if l.profile != nil {
		return l.profile.nodes
	}
	set := map[string]bool{}
	for i := range l.providers {
		set[l.providers[i].nodeID()] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// edgeFile renders the edge's file. JSON is YAML.
func (l *layout) edgeFile(id, dataDir string) []byte {
	if l.profile != nil {
		return l.profile.file(dataDir)
	}
	edge := map[string]any{
		"id": id, "data_dir": dataDir,
		"listen":             map[string]any{"openai": "127.0.0.1:0", "node": "127.0.0.1:0", "admin": "127.0.0.1:0"},
		"link":               map[string]any{"heartbeat_ms": or(l.heartbeat, 500*time.Millisecond).Milliseconds(), "missed": or(l.missed, 3)},
		"queue_keepalive_ms": l.keepalive.Milliseconds(),
		"stop_timeout_ms":    or(l.stop, 10*time.Second).Milliseconds(),
	}
	maps.Copy(edge, l.edge)
	file := map[string]any{
		"edge": edge,
		"provider_pool": map[string]any{
			"max_queue": or(l.queue, 64), "queue_timeout_ms": l.timeout.Milliseconds(),
			"startup_grace_ms":   or(l.grace, 2*time.Second).Milliseconds(),
			"reattach_window_ms": or(l.reattach, 30*time.Second).Milliseconds(),
			"fence_timeout_ms":   or(l.fence, 10*time.Second).Milliseconds(),
		},
		"long_context_threshold_tokens": or(l.threshold, 1000),
		"models":                        l.modelList(),
		"nodes":                         l.nodeList(),
		"openai":                        map[string]any{"principal_tokens": l.tokenList()},
	}
	maps.Copy(file, l.cluster)
	return edited(render(file), l.edits)
}

func (l *layout) modelList() []any {
	out := []any{}
	for _, m := range slices.Sorted(maps.Keys(l.models)) {
		ps := map[string]string{}
		for _, p := range l.models[m] {
			ps[p] = l.servedBy(p)
		}
		out = append(out, map[string]any{"id": m, "providers": ps})
	}
	return out
}

func (l *layout) tokenList() []any {
	out := []any{}
	for _, ref := range slices.Sorted(maps.Keys(l.tokens)) {
		out = append(out, map[string]any{
			"token_ref": ref, "token_hash_sha256": sha(l.tokens[ref]), "principal_ref": "team-" + ref,
		})
	}
	return out
}

func (l *layout) nodeList() []any {
	out := []any{}
	for _, n := range l.nodes() {
		adapters, providers := []any{}, []any{}
		for i := range l.providers {
			if p := &l.providers[i]; p.nodeID() == n {
				adapters = append(adapters, p.adapter())
				providers = append(providers, p.entry())
			}
		}
		out = append(out, map[string]any{
			"id": n, "token_hash_sha256": sha(nodeToken(n)), "adapters": adapters, "providers": providers,
		})
	}
	return out
}

func (p *provider) adapter() map[string]any {
	if p.url != "" {
		kind := "openai_compat"
		if p.kind == "ollama" {
			kind = p.kind
		}
		return map[string]any{"id": "a-" + p.id, "type": kind, "base_url": p.url}
	}
	if len(p.command) > 0 {
		a := map[string]any{"id": "a-" + p.id, "type": "cli", "command": p.command}
		if p.cli != nil {
			a["cli"] = p.cli
		}
		return a
	}
	a := map[string]any{"id": "a-" + p.id, "type": "demo"}
	if p.demo != nil {
		a["demo"] = p.demo
	}
	return a
}

func (p *provider) entry() map[string]any {
	kind := p.kind
	switch {
	case kind != "":
	case len(p.command) > 0:
		kind = "cli"
	case p.url == "":
		kind = "demo"
	default:
		kind = "openai_compat"
	}
	e := map[string]any{
		"id": p.id, "type": kind, "adapter": "a-" + p.id, "models": []string{or(p.serves, served(p.id))},
		"capacity": or(p.capacity, 1), "priority": p.priority, "enabled": !p.disabled,
	}
	if kind == "cli" {
		delete(e, "capacity")
	}
	if p.check != 0 {
		e["health_check"] = map[string]any{"path": "/health", "interval_ms": p.check.Milliseconds()}
	}
	if p.long != 0 {
		e["long_context_capacity"] = max(p.long, 0)
	}
	if p.window != 0 {
		e["context_window_tokens"] = p.window
	}
	return e
}

// unmetered is a layout whose edge asks no stream for its usage, so that nothing of a request changes but the model.
func (l layout) unmetered() layout {
	l.cluster = map[string]any{"openai": map[string]any{"usage": map[string]any{"tokens": false}}}
	return l
}

// nodeFile renders a node's file.
func nodeFile(id, token string, edges ...string) []byte {
	return (&layout{}).nodeFile(id, token, edges...)
}

// nodeFile renders the file of a node of the layout.
func (l *layout) nodeFile(id, token string, edges ...string) []byte {
	node := map[string]any{"id": id, "token": token, "edges": edges}
	maps.Copy(node, l.node)
	return render(map[string]any{"node": node})
}

func render(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // maps of plain values always marshal
	}
	return b
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
