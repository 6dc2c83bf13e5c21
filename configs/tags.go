package configs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkTags walks a configuration and reports what breaks the rules in the schema's tags: required, min, max, enum. A
// field with omitempty that is zero and that the file does not set is absent, and breaks none but required.
func checkTags(r *report, v any) { checkStruct(r, "", reflect.ValueOf(v).Elem()) }

func checkStruct(r *report, path string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			checkStruct(r, path, v.Field(i))
			continue
		}
		at := keyPath(path, keyOf(f))
		checkField(r, at, f, v.Field(i))
		checkInside(r, at, v.Field(i))
	}
}

func checkInside(r *report, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		checkStruct(r, path, v)
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct && !v.IsNil() {
			checkStruct(r, path, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				checkStruct(r, indexPath(path, i), v.Index(i))
			}
		}
	}
}

func checkField(r *report, path string, f reflect.StructField, v reflect.Value) {
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() != reflect.Struct {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if f.Tag.Get("required") != "" && isEmpty(v) {
		checkMissing(r, path, f)
		return
	}
	absent := strings.Contains(f.Tag.Get("json"), ",omit") && v.IsZero() && !r.set[path]
	if absent || r.failed(path) {
		return
	}
	checkRange(r, path, f, v)
	checkEnum(r, path, f, v)
}

// checkMissing reports a required key, or once what should hold it.
func checkMissing(r *report, path string, f reflect.StructField) {
	switch what := keyOf(f) + ": " + firstSentence(f.Tag.Get("doc")); {
	case r.failed(path) || r.guessed[path] || r.failedAt(parentPath(path)):
	case len(r.set) > 0 && !r.set[parentPath(path)]:
		r.problem(parentPath(path), "is missing", "add it, with "+what)
	case r.set[path]:
		r.problem(path, "is empty", "give "+what)
	default:
		r.problem(path, "is missing", "add "+what)
	}
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

func checkRange(r *report, path string, f reflect.StructField, v reflect.Value) {
	low, high := f.Tag.Get("min"), f.Tag.Get("max")
	if low == "" {
		return
	}
	if outside(v, low, high) {
		r.problem(path, fmt.Sprintf("%v is out of range", v.Interface()), fmt.Sprintf("give a value from %s to %s", low, high))
	}
}

func outside(v reflect.Value, low, high string) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return cmp.Less(v.Int(), parseTag[int64](low)) || cmp.Less(parseTag[int64](high), v.Int())
	case reflect.Float64:
		return cmp.Less(v.Float(), parseTag[float64](low)) || cmp.Less(parseTag[float64](high), v.Float())
	}
	return false
}

// parseTag reads a bound out of a tag of the schema; a test shows that all of them can be read.
func parseTag[T int64 | float64](s string) T {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("configs: bad bound in the schema: " + s)
	}
	return T(x)
}

func checkEnum(r *report, path string, f reflect.StructField, v reflect.Value) {
	enum := f.Tag.Get("enum")
	if enum == "" || v.String() == "" {
		return
	}
	known := strings.Split(enum, ",")
	if slices.Contains(known, v.String()) {
		return
	}
	cure := "known: " + strings.Join(known, ", ")
	if near := Nearest(v.String(), known); near != "" {
		cure = fmt.Sprintf("did you mean %s? %s", near, cure)
	}
	r.problem(path, fmt.Sprintf("%s is unknown", shorten(v.String())), cure)
}

// shorten quotes a value for a message.
func shorten(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:77], "") + "…"
	}
	return strconv.Quote(s)
}

func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}
