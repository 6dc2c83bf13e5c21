package configs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema gives the JSON Schema (2020-12) of the edge file, for editors. configs/edge.schema.json is a copy.
func Schema() []byte { return schemaFile("iop edge file", NewEdge()) }

// NodeSchema gives the JSON Schema (2020-12) of the node file. configs/node.schema.json is a copy.
func NodeSchema() []byte { return schemaFile("iop node file", NewNode()) }

// schemaNode is one level of a JSON Schema. Maps are encoded in the order of their keys, so the bytes are stable.
type schemaNode map[string]any

func schemaFile(title string, defaults any) []byte {
	root := structSchema(reflect.ValueOf(defaults).Elem())
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		panic("configs: encode the schema: " + err.Error()) // it is made of strings and numbers
	}
	return b.Bytes()
}

// structSchema describes a struct; v holds its defaults.
func structSchema(v reflect.Value) schemaNode {
	properties, required := schemaNode{}, []string{}
	addFields(v, properties, &required)
	out := schemaNode{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func addFields(v reflect.Value, properties schemaNode, required *[]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			addFields(v.Field(i), properties, required)
			continue
		}
		properties[keyOf(f)] = fieldSchema(f, v.Field(i))
		if f.Tag.Get("required") != "" && v.Field(i).IsZero() {
			*required = append(*required, keyOf(f))
		}
	}
}

func fieldSchema(f reflect.StructField, v reflect.Value) schemaNode {
	out := valueSchema(v)
	out["description"] = f.Tag.Get("doc")
	if enum := f.Tag.Get("enum"); enum != "" {
		out["enum"] = strings.Split(enum, ",")
	}
	if low := f.Tag.Get("min"); low != "" {
		out["minimum"], out["maximum"] = json.Number(low), json.Number(f.Tag.Get("max"))
	}
	if f.Tag.Get("required") != "" && v.Kind() == reflect.Slice {
		out["minItems"] = 1
	}
	return out
}

func valueSchema(v reflect.Value) schemaNode {
	switch v.Kind() {
	case reflect.Struct:
		return structSchema(v)
	case reflect.Pointer:
		return valueSchema(fresh(v.Type().Elem()))
	case reflect.Slice:
		return schemaNode{"type": "array", "items": valueSchema(fresh(v.Type().Elem()))}
	case reflect.Map:
		return schemaNode{"type": "object", "additionalProperties": valueSchema(fresh(v.Type().Elem()))}
	}
	return scalarSchema(v)
}

// fresh gives a value that holds the defaults of its type.
func fresh(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if x, ok := p.Interface().(defaulter); ok {
		x.setDefaults()
	}
	return p.Elem()
}

// scalarSchema describes a scalar. In the own part ${NAME} may stand for a number too, which editors will underline; the
// loader takes it.
func scalarSchema(v reflect.Value) schemaNode {
	out := schemaNode{}
	switch v.Kind() {
	case reflect.Bool:
		out["type"] = "boolean"
		out["default"] = v.Bool()
	case reflect.Int, reflect.Int64:
		out["type"] = "integer"
		if v.Int() != 0 {
			out["default"] = json.Number(strconv.FormatInt(v.Int(), 10))
		}
	case reflect.Float64:
		out["type"] = "number"
	case reflect.String:
		out["type"] = "string"
		if v.String() != "" {
			out["default"] = v.String()
		}
	default:
		panic("configs: no schema for " + v.Type().String())
	}
	return out
}
