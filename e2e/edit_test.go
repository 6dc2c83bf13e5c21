package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// absent as the value of an edit removes the key or entry.
const absent = "\x00absent"

// edited is a file (JSON) with other values at some paths, written as in nodes[0].providers[1].capacity. Keys of the
// path that are not there are made; a list grows as needed.
func edited(file []byte, edits map[string]any) []byte {
	if len(edits) == 0 {
		return file
	}
	var whole any
	if err := json.Unmarshal(file, &whole); err != nil {
		panic(fmt.Sprintf("the layout renders no JSON: %v", err))
	}
	for _, path := range slices.Sorted(maps.Keys(edits)) {
		whole = place(whole, strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }), edits[path])
	}
	return render(whole)
}

// place returns v with a value at the path below it.
func place(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	i, err := strconv.Atoi(path[0])
	if err != nil {
		m, _ := v.(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		if len(path) == 1 && value == any(absent) {
			delete(m, path[0])
			return m
		}
		m[path[0]] = place(m[path[0]], path[1:], value)
		return m
	}
	list, _ := v.([]any)
	if len(path) == 1 && value == any(absent) {
		return slices.Delete(list, i, i+1)
	}
	for i >= len(list) {
		list = append(list, nil)
	}
	list[i] = place(list[i], path[1:], value)
	return list
}

// clone is a copy that shares nothing that a test changes.
func (l *layout) clone() layout {
	out := *l
	out.providers = slices.Clone(l.providers)
	out.models = maps.Clone(l.models)
	out.edits = maps.Clone(l.edits)
	if out.edits == nil {
		out.edits = map[string]any{}
	}
	return out
}

func TestEditsOfALayout(t *testing.T) {
	for want, edits := range map[string]map[string]any{
		`{"a":{"b":[1,2]},"c":3}`:                  {},
		`{"a":{"b":[1,5]},"c":3}`:                  {"a.b[1]": 5},
		`{"a":{"b":[1,2,{"d":"x"}]},"c":3}`:        {"a.b[2].d": "x"},
		`{"a":{"b":[2]}}`:                          {"a.b[0]": absent, "c": absent},
		`{"a":{"b":[1,2]},"c":3,"e":{"f":[true]}}`: {"e.f[0]": true},
	} {
		got := edited([]byte(`{"a":{"b":[1,2]},"c":3}`), edits)
		var v any
		if err := json.Unmarshal(got, &v); err != nil {
			t.Fatal(err)
		}
		if compact, _ := json.Marshal(v); string(compact) != want {
			t.Errorf("%v: %s, want %s", edits, compact, want)
		}
	}
}
