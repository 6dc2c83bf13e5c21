package configs

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestSchemaFilesAreCurrent(t *testing.T) {
	compareGolden(t, "edge.schema.json", string(Schema()))
	compareGolden(t, "node.schema.json", string(NodeSchema()))
}

// Each field of the schema has a key and a description, and bounds that can be read.
func TestSchemaTags(t *testing.T) {
	for _, root := range []any{Edge{}, Node{}} {
		walkFields(reflect.TypeOf(root), func(owner reflect.Type, f reflect.StructField) {
			name := owner.Name() + "." + f.Name
			if key := keyOf(f); key == "" || strings.ToLower(key) != key {
				t.Errorf("%s has the key %q", name, key)
			}
			if f.Tag.Get("doc") == "" {
				t.Errorf("%s has no doc", name)
			}
			if (f.Tag.Get("min") == "") != (f.Tag.Get("max") == "") {
				t.Errorf("%s has one bound only", name)
			}
			if low := f.Tag.Get("min"); low != "" && parseTag[float64](low) >= parseTag[float64](f.Tag.Get("max")) {
				t.Errorf("%s has bounds that no value fits", name)
			}
			if strings.HasSuffix(f.Name, "MS") && f.Type != reflect.TypeFor[Millis]() {
				t.Errorf("%s is in milliseconds but not of type Millis", name)
			}
		})
	}
}

func walkFields(t reflect.Type, fn func(owner reflect.Type, f reflect.StructField)) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous {
			fn(t, f)
		}
		walkFields(f.Type, fn)
	}
}

// The examples must satisfy the schema that editors use, and a wrong file must not.
func TestSchemaAgreesWithTheLoader(t *testing.T) {
	edge, node := decodeSchema(t, Schema()), decodeSchema(t, NodeSchema())
	for file, schema := range map[string]map[string]any{
		"examples/edge.yaml": edge, "examples/demo-edge.yaml": edge, "examples/node.yaml": node, "examples/demo-node.yaml": node,
	} {
		if faults := satisfies(schema, decodeYAML(t, file), file); len(faults) > 0 {
			t.Error(faults)
		}
	}
	for _, file := range []string{"key-unknown-pool", "type-bool-is-text", "edge-no-id", "provider-unknown-type", "pool-queue-negative", "type-list-is-map"} {
		if faults := satisfies(edge, decodeYAML(t, "testdata/faulty/"+file+".yaml"), file); len(faults) != 1 {
			t.Errorf("%s: %d faults by the schema: %v", file, len(faults), faults)
		}
	}
}

func decodeSchema(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func decodeYAML(t *testing.T, file string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// satisfies checks the few words of JSON Schema that ours uses.
func satisfies(schema map[string]any, v any, at string) []string {
	var faults []string
	fault := func(what string) { faults = append(faults, at+": "+what) }
	switch schema["type"] {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return append(faults, at+": no object")
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, value := range m {
			inner, known := properties[key].(map[string]any)
			if !known {
				inner, known = schema["additionalProperties"].(map[string]any)
			}
			if !known {
				fault("unknown " + key)
				continue
			}
			faults = append(faults, satisfies(inner, value, at+"."+key)...)
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			if _, ok := m[key.(string)]; !ok {
				fault("missing " + key.(string))
			}
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return append(faults, at+": no array")
		}
		for _, item := range list {
			faults = append(faults, satisfies(schema["items"].(map[string]any), item, at+"[]")...)
		}
	case "string":
		s, ok := v.(string)
		enum, _ := schema["enum"].([]any)
		known := enum == nil
		for _, e := range enum {
			known = known || e == s
		}
		if !ok || !known {
			fault("no such string")
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			fault("no boolean")
		}
	case "integer", "number":
		var x float64
		switch n := v.(type) {
		case int:
			x = float64(n)
		case float64:
			x = n
		default:
			return append(faults, at+": no number")
		}
		if low, ok := schema["minimum"].(float64); ok && (x < low || x > schema["maximum"].(float64)) {
			fault("out of range")
		}
	default:
		fault("a type that the test does not know")
	}
	return faults
}
