package configs

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// YAML rewrites a JSON text as block-style YAML. Keys keep their order.
func YAML(text []byte) ([]byte, error) {
	var doc yaml.Node // JSON is YAML in flow style
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("rewrite JSON as YAML: %w", err)
	}
	plain(&doc)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("rewrite JSON as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// plain takes the JSON look off a tree; empty lists and maps keep it, as YAML has no other for them.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}
