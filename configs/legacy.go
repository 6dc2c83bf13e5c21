package configs

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// legacyValue is a queue bound that an old file gives per provider; there is but one queue.
type legacyValue struct {
	path string
	node *yaml.Node
}

// promoteLegacy moves nodes[].providers[].max_queue and queue_timeout_ms to provider_pool, in the tree, before it is
// decoded. They must all be equal; where provider_pool says its own, that holds.
func promoteLegacy(root *yaml.Node, r *report) {
	for _, key := range []string{"max_queue", "queue_timeout_ms"} {
		values := takeLegacy(root, key, r)
		if len(values) == 0 || !legacyAgree(values, key, r) {
			continue
		}
		pool := child(root, "provider_pool")
		if pool == nil || isNull(pool) {
			pool = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: values[0].node.Line}
			setChild(root, "provider_pool", pool)
		}
		if pool.Kind != yaml.MappingNode {
			continue // decoding reports it
		}
		if own := child(pool, key); own != nil && !isNull(own) {
			r.warn(values[0].path, fmt.Sprintf("legacy key, ignored: provider_pool.%s holds; remove it", key))
			continue
		}
		r.warn(values[0].path, fmt.Sprintf("legacy key, taken as provider_pool.%s: there is one queue for all providers; move it there", key))
		r.moved[keyPath("provider_pool", key)] = values[0].path
		setChild(pool, key, values[0].node)
	}
}

// takeLegacy cuts a key out of every provider of the tree.
func takeLegacy(root *yaml.Node, key string, r *report) []legacyValue {
	var out []legacyValue
	for i, n := range items(child(root, "nodes")) {
		for j, p := range items(child(n, "providers")) {
			for k := 0; p.Kind == yaml.MappingNode && k+1 < len(p.Content); k += 2 {
				if p.Content[k].Value != key {
					continue
				}
				path := fmt.Sprintf("nodes[%d].providers[%d].%s", i, j, key)
				r.lines[path] = p.Content[k].Line
				if !isNull(p.Content[k+1]) {
					out = append(out, legacyValue{path, p.Content[k+1]})
				}
				p.Content = append(p.Content[:k:k], p.Content[k+2:]...)
				break
			}
		}
	}
	return out
}

func legacyAgree(values []legacyValue, key string, r *report) bool {
	ok := true
	first, err := legacyInt(values[0])
	for _, v := range values {
		n, e := legacyInt(v)
		switch {
		case e != nil:
			r.problem(v.path, "expected a whole number, found "+describe(v.node, true), "remove it and set provider_pool."+key)
			ok = false
		case err == nil && n != first:
			r.problem(v.path, fmt.Sprintf("legacy key with another value than %s (%d, there %d); there is one queue for all providers", values[0].path, n, first),
				"remove both and set provider_pool."+key)
			ok = false
		}
	}
	return ok
}

func legacyInt(v legacyValue) (int64, error) {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!int" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(v.node.Value, 0, 64)
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// setChild sets a key's value, in its place if the key is there.
func setChild(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: value.Line}, value)
}
