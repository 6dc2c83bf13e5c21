package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"iop/configs"
	"iop/edged/refresh"
)

const referenceFile = "../docs/CONFIG-REFERENCE.md"

const referenceHead = `# Configuration reference

Every key of both files. This page is made from the schema that the programs load with: ` + "`go test ./e2e -run TestConfigReference -update`" + `.
How a configuration changes while all runs is in [CONFIG.md](CONFIG.md); examples with comments are in [configs/examples](../configs/examples/);
` + "`iopctl config schema`" + ` is the same for editors.

- **required** keys have no default. A dash is: empty, none or 0.
- **change**: *live* is taken over by ` + "`iopctl refresh`" + ` while all runs, *restart* at the next start of the edge. A node that is new is live with all that is in it.
- ` + "`[]`" + ` stands for each entry of a list, or each key of a map. Names that end in ` + "`_ms`" + ` are milliseconds, in ` + "`_bytes`" + ` bytes.

`

// TestConfigReferenceIsCurrent holds docs/CONFIG-REFERENCE.md against the schema; -update writes it anew.
func TestConfigReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	r := &reference{t: t}
	r.b.WriteString(referenceHead)
	r.file("The edge file", configs.Schema(), reflect.TypeFor[configs.Edge](), true)
	r.file("The node file", configs.NodeSchema(), reflect.TypeFor[configs.Node](), false)
	got := strings.TrimRight(r.b.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(referenceFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("docs/CONFIG-REFERENCE.md is not what the schema says: go test ./e2e -run TestConfigReference -update")
	}
	if n := strings.Count(got, "\n| `"); n < 150 {
		t.Errorf("the reference has %d keys only", n)
	}
}

// reference writes the page. Words, bounds and defaults come from the schema, the order from the types.
type reference struct {
	t *testing.T
	b strings.Builder
}

// referenceKey is what the JSON Schema says of a key.
type referenceKey struct {
	Description string                   `json:"description"`
	Type        string                   `json:"type"`
	Default     any                      `json:"default"`
	Minimum     json.Number              `json:"minimum"`
	Maximum     json.Number              `json:"maximum"`
	Enum        []string                 `json:"enum"`
	Required    []string                 `json:"required"`
	Properties  map[string]*referenceKey `json:"properties"`
	Items       *referenceKey            `json:"items"`
	Additional  json.RawMessage          `json:"additionalProperties"`
}

func (r *reference) file(title string, schema []byte, of reflect.Type, classed bool) {
	r.t.Helper()
	var root referenceKey
	d := json.NewDecoder(strings.NewReader(string(schema)))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(&r.b, "## %s\n\n", title)
	r.group("", &root, of, classed)
}

// group writes the table of a group of keys, then those of the groups in it.
func (r *reference) group(at string, k *referenceKey, of reflect.Type, classed bool) {
	r.t.Helper()
	if at != "" {
		fmt.Fprintf(&r.b, "### `%s`\n\n", at)
		if k.Description != "" {
			r.b.WriteString(k.Description + "\n\n")
		}
	}
	head, rule := "| key | type | default |", "|---|---|---|"
	if classed {
		head, rule = head+" change |", rule+"---|"
	}
	r.b.WriteString(head + " what |\n" + rule + "---|\n")
	fields := referenceFields(of)
	if len(fields) != len(k.Properties) {
		r.t.Fatalf("%q: %d fields, %d keys in the schema", at, len(fields), len(k.Properties))
	}
	for _, f := range fields {
		r.row(at, f, k, classed)
	}
	r.b.WriteString("\n")
	for _, f := range fields {
		if place, in, t := groupIn(join(at, f.key), k.Properties[f.key], f.of); in != nil {
			in.Description = k.Properties[f.key].Description
			r.group(place, in, t, classed)
		}
	}
}

func (r *reference) row(at string, f referenceField, k *referenceKey, classed bool) {
	r.t.Helper()
	x, place := k.Properties[f.key], join(at, f.key)
	if x == nil {
		r.t.Fatalf("no key %s in the schema", place)
	}
	what := strings.ReplaceAll(x.Description, "|", "\\|")
	below, in, _ := groupIn(place, x, f.of)
	if in != nil {
		what = fmt.Sprintf("%s See `%s`.", what, below)
	}
	fmt.Fprintf(&r.b, "| `%s` | %s | %s |", f.key, x.kind(), x.standard(slices.Contains(k.Required, f.key)))
	if classed {
		fmt.Fprintf(&r.b, " %s |", r.class(place, below, in != nil))
	}
	r.b.WriteString(" " + what + " |\n")
}

// class is when a change of a place takes effect; what only holds others has none of its own.
func (r *reference) class(place, below string, group bool) string {
	r.t.Helper()
	class, known := refresh.ClassOf(place)
	if !known {
		class, known = refresh.ClassOf(below)
	}
	switch {
	case !known && group:
		return ""
	case !known:
		class, known = refresh.ClassOf(place + "[]")
	}
	if !known {
		r.t.Errorf("%s has no class", place)
	}
	if class == refresh.Live {
		return "live"
	}
	return "restart"
}

type referenceField struct {
	key string
	of  reflect.Type
}

// referenceFields gives the keys of a struct in their order, inlined ones too.
func referenceFields(t reflect.Type) (out []referenceField) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, referenceFields(f.Type)...)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, referenceField{key: key, of: f.Type})
	}
	return out
}

// groupIn gives the group of keys that a key holds, nil if it holds none.
func groupIn(place string, k *referenceKey, t reflect.Type) (at string, in *referenceKey, of reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct && k.Properties != nil:
		return place, k, t
	case t.Kind() == reflect.Slice && k.Items != nil:
		return groupIn(place+"[]", k.Items, t.Elem())
	}
	return place, nil, nil
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// kind is the type with its bounds.
func (k *referenceKey) kind() string {
	switch {
	case len(k.Enum) > 0:
		return "`" + strings.Join(k.Enum, "`, `") + "`"
	case k.Type == "array" && k.Items.Properties == nil:
		return "list of " + k.Items.kind()
	case k.Type == "array":
		return "list"
	case k.Type == "object" && k.Properties == nil:
		return "map"
	case k.Type == "object":
		return "group"
	case k.Minimum != "":
		return fmt.Sprintf("%s, %s to %s", k.Type, k.Minimum, k.Maximum)
	}
	return k.Type
}

func (k *referenceKey) standard(required bool) string {
	switch {
	case required:
		return "**required**"
	case k.Default == nil || k.Default == "":
		return "–"
	}
	return fmt.Sprintf("`%v`", k.Default)
}
