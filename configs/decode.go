package configs

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder puts a file's nodes into the schema's structs and reports what does not fit: unknown and repeated keys, wrong
// kinds of value, ${NAME} where none may stand. It goes on after a fault, so that all are reported. Keys that are absent
// or have no value keep what the target holds: its default.
type decoder struct {
	report *report
	env    Env
	// expandUnder is the top key under which ${NAME} is replaced; empty: everywhere.
	expandUnder string
	root        reflect.Type
}

func newDecoder(r *report, env Env, expandUnder string) *decoder {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return &decoder{report: r, env: env, expandUnder: expandUnder}
}

// defaulter is a type whose elements in lists, or behind pointers, do not start from zero values.
type defaulter interface{ setDefaults() }

// octal finds numbers that some read as octal and some as decimal.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]`)

var secretType = reflect.TypeFor[Secret]()

func (d *decoder) decode(root *yaml.Node, target any) {
	v := reflect.ValueOf(target).Elem()
	d.report.set[""] = true
	d.root = v.Type()
	d.structure(root, "", v)
}

func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.report.problem(path, "anchors (&) and aliases (*) are not supported", "write the value out")
		return
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.report.problem(path, "YAML tags (!) are not supported", "remove the tag; put text that begins with ! in quotes")
		return
	}
	if isNull(n) {
		return
	}
	d.report.set[path] = true
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if x, ok := p.Interface().(defaulter); ok {
			x.setDefaults()
		}
		d.value(n, path, p.Elem())
		v.Set(p)
	case reflect.Struct:
		if d.is(n, path, yaml.MappingNode, "a group of keys") {
			d.structure(n, path, v)
		}
	case reflect.Map:
		if d.is(n, path, yaml.MappingNode, "a group of keys") {
			d.mapping(n, path, v)
		}
	case reflect.Slice:
		if d.is(n, path, yaml.SequenceNode, "a list") {
			d.sequence(n, path, v)
		}
	default:
		if d.is(n, path, yaml.ScalarNode, kindName(v.Kind())) {
			d.scalar(n, path, v)
		}
	}
}

func (d *decoder) is(n *yaml.Node, path string, kind yaml.Kind, want string) bool {
	if n.Kind == kind {
		return true
	}
	cure := "see the examples in configs/examples"
	if kind == yaml.SequenceNode {
		cure = "write [ … ], or one '- ' per line"
	}
	d.report.problem(path, "expected "+want+", found "+describe(n, d.mayShow(path)), cure)
	return false
}

func (d *decoder) structure(n *yaml.Node, path string, v reflect.Value) {
	fields := fieldsOf(v)
	d.eachKey(n, path, func(key string, value *yaml.Node, at string) {
		f, ok := fields[key]
		if !ok {
			d.unknownKey(key, path, at, fields)
			return
		}
		d.value(value, at, f)
	})
}

func (d *decoder) mapping(n *yaml.Node, path string, v reflect.Value) {
	m := reflect.MakeMap(v.Type())
	d.eachKey(n, path, func(key string, value *yaml.Node, at string) {
		if isNull(value) {
			d.report.problem(at, "has no value", "give one, or remove the key")
			return
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(value, at, e)
		m.SetMapIndex(reflect.ValueOf(key), e)
	})
	v.Set(m)
}

func (d *decoder) sequence(n *yaml.Node, path string, v reflect.Value) {
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := indexPath(path, i)
		d.report.lines[at] = item.Line
		if isNull(item) {
			d.report.problem(at, "this entry of the list is empty", "fill it in, or remove the '-'")
			continue
		}
		e := list.Index(i)
		if x, ok := e.Addr().Interface().(defaulter); ok {
			x.setDefaults()
		}
		d.value(item, at, e)
	}
	v.Set(list)
}

// eachKey calls fn for each key that is new, plain and in order.
func (d *decoder) eachKey(n *yaml.Node, path string, fn func(key string, value *yaml.Node, at string)) {
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || k.Tag == "!!merge" {
			d.report.problemAt(path, k.Line, "a key must be plain text; merge keys (<<), anchors and aliases are not supported", "write the keys out")
			continue
		}
		if looksSecret(k.Value) {
			d.report.problemAt(path, k.Line, "a key here looks like a raw token", rawSecretCure)
			continue
		}
		at := keyPath(path, k.Value)
		if line, ok := first[k.Value]; ok {
			d.report.problemAt(at, k.Line, fmt.Sprintf("this key stands twice, first in line %d", line), "keep one of them")
			continue
		}
		first[k.Value] = k.Line
		d.report.lines[at] = k.Line
		if strings.Contains(k.Value, "${") {
			d.report.problem(at, "${…} cannot stand in a key", "write the name out")
			continue
		}
		fn(k.Value, value, at)
	}
}

// fieldsOf gives the addressable fields by key; an embedded struct's keys stand beside the others.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	out := make(map[string]reflect.Value, v.NumField())
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			for k, x := range fieldsOf(v.Field(i)) {
				out[k] = x
			}
			continue
		}
		out[keyOf(f)] = v.Field(i)
	}
	return out
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	text, expanded, ok := d.expand(n, path)
	if !ok {
		return
	}
	fail := func(cure string) {
		d.report.problem(path, "expected "+kindName(v.Kind())+", found "+describe(n, d.mayShow(path) && v.Type() != secretType), cure)
	}
	tag := n.ShortTag()
	plain := expanded && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
	switch v.Kind() {
	case reflect.String:
		if tag != "!!str" {
			fail("write it in quotes")
			return
		}
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil || !plain && tag != "!!bool" {
			fail("write true or false, without quotes")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, v.Type().Bits())
		if errors.Is(err, strconv.ErrRange) {
			d.report.problem(path, "the number is too large", "give one that fits in 64 bits")
			return
		}
		if octal.MatchString(text) {
			fail("write it without leading zeros")
			return
		}
		if err != nil || !plain && tag != "!!int" {
			fail("write a whole number without quotes or unit")
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		x, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || !plain && tag != "!!int" && tag != "!!float" {
			fail("write a finite number without quotes")
			return
		}
		v.SetFloat(x)
	default:
		panic("configs: no decoding for " + v.Type().String())
	}
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text"
}
