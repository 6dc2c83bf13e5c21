package demo

import (
	"encoding/json"
	"strings"
)

// depthMax bounds how deep an instance goes: a schema may refer to itself.
const depthMax = 16

// instance makes the smallest JSON that fits a schema: of objects what is required, of enums the first, of numbers the
// minimum. It knows the part of JSON Schema that structured outputs take: type, enum, const, properties, required, items,
// minItems, anyOf, minimum, minLength and references within the schema.
func instance(schema json.RawMessage) json.RawMessage {
	var root node
	if json.Unmarshal(schema, &root) != nil {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(root.make(&root, 0))
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// node is one schema within a schema.
type node struct {
	Type       any              `json:"type"` // a name or a list of names
	Enum       []any            `json:"enum"`
	Const      *json.RawMessage `json:"const"`
	Properties map[string]*node `json:"properties"`
	Required   []string         `json:"required"`
	Items      *node            `json:"items"`
	MinItems   int              `json:"minItems"`
	MinLength  int              `json:"minLength"`
	Minimum    *json.Number     `json:"minimum"`
	AnyOf      []*node          `json:"anyOf"`
	OneOf      []*node          `json:"oneOf"`
	Ref        string           `json:"$ref"`
	Defs       map[string]*node `json:"$defs"`
	Older      map[string]*node `json:"definitions"`
}

// itemsMax bounds what minItems and minLength may ask for.
const itemsMax = 1024

func (n *node) make(root *node, depth int) any {
	if n == nil || depth > depthMax {
		return nil
	}
	switch {
	case n.Ref != "":
		return root.find(n.Ref).make(root, depth+1)
	case n.Const != nil:
		return n.Const
	case len(n.Enum) > 0:
		return n.Enum[0]
	case len(n.AnyOf) > 0:
		return n.AnyOf[0].make(root, depth+1)
	case len(n.OneOf) > 0:
		return n.OneOf[0].make(root, depth+1)
	}
	switch n.kind() {
	case "object":
		object := map[string]any{}
		for _, name := range n.Required {
			object[name] = n.Properties[name].make(root, depth+1)
		}
		return object
	case "array":
		list := []any{}
		for range min(n.MinItems, itemsMax) {
			list = append(list, n.Items.make(root, depth+1))
		}
		return list
	case "string":
		return strings.Repeat("x", max(0, min(n.MinLength, itemsMax)))
	case "integer", "number":
		if n.Minimum != nil {
			return *n.Minimum
		}
		return 0
	case "boolean":
		return false
	}
	return nil
}

// kind is the type, the first of several; without one it is told from what else is there.
func (n *node) kind() string {
	switch t := n.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[0].(string)
			return name
		}
	}
	switch {
	case n.Properties != nil || n.Required != nil:
		return "object"
	case n.Items != nil:
		return "array"
	}
	return ""
}

// find resolves a reference within the schema.
func (n *node) find(ref string) *node {
	if ref == "#" {
		return n
	}
	for prefix, defs := range map[string]map[string]*node{"#/$defs/": n.Defs, "#/definitions/": n.Older} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return defs[name]
		}
	}
	return nil
}
