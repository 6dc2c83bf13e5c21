package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// unknownKey reports a key that the schema does not have at path, with the cure that is likeliest.
func (d *decoder) unknownKey(key, path, at string, fields map[string]reflect.Value) {
	if !d.own(at) && slices.Contains(secretKeys, strings.ToLower(key)) {
		d.report.problem(at, "a raw secret cannot stand in the part that the cluster shares", rawSecretCure)
		return
	}
	known := make([]string, 0, len(fields))
	for k := range fields {
		known = append(known, k)
	}
	slices.Sort(known)
	cure := "known here: " + strings.Join(known, ", ")
	if homes := homesOf(d.root, "", key); len(homes) > 0 {
		cure = "it belongs to " + strings.Join(homes, ", or to ")
	}
	if near := Nearest(key, known); near != "" {
		cure = fmt.Sprintf("did you mean %s?", near)
		d.report.guessed[keyPath(path, near)] = true
	}
	d.report.problem(at, "unknown key", cure)
}

// homesOf finds the groups of the schema that have a key, as nodes[].providers[].
func homesOf(t reflect.Type, path, key string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		at := path
		if !f.Anonymous {
			at = strings.TrimPrefix(path+"."+keyOf(f), ".")
		}
		if keyOf(f) == key && path != "" {
			out = append(out, path)
		}
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				at += "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, homesOf(inner, at, key)...)
		}
	}
	return out
}
