package refresh

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// keyOf is a field's key in the file, "" of one that is inlined.
func keyOf(f *reflect.StructField) string {
	if f.Anonymous {
		return ""
	}
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// idKeys are the keys that name an entry of a list.
var idKeys = []string{"id", "token_ref", "ref"}

// idField is the index of the field that names an entry of a list of t, -1 if there is none.
func idField(t reflect.Type) int {
	for i := range t.NumField() {
		f := t.Field(i)
		if slices.Contains(idKeys, keyOf(&f)) {
			return i
		}
	}
	return -1
}

// isList tells that t is a list of entries with ids.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && idField(t.Elem()) >= 0
}

// isGroup tells that t is a group of keys that may be absent as a whole.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// byID gives where the entries of a list stand.
func byID(list reflect.Value) map[string]int {
	id := idField(list.Type().Elem())
	at := make(map[string]int, list.Len())
	for i := range list.Len() {
		at[list.Index(i).Field(id).String()] = i
	}
	return at
}

// ids gives the ids of two lists, sorted, each once.
func ids(a, b map[string]int) []string {
	all := slices.Collect(maps.Keys(a))
	for id := range b {
		if _, ok := a[id]; !ok {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// trail is where a walk is. Most values are equal, so a path is only put together when it is needed.
type trail struct {
	steps []step
}

// step is a key of the schema, an entry of a list by its id, or an entry of a map by its key.
type step struct {
	key   string
	entry bool
	free  bool // of a map
}

func (t *trail) down(key string) {
	if key != "" {
		t.steps = append(t.steps, step{key: key})
	}
}

func (t *trail) up(key string) {
	if key != "" {
		t.steps = t.steps[:len(t.steps)-1]
	}
}

func (t *trail) enter(id string) { t.steps = append(t.steps, step{key: id, entry: true}) }

func (t *trail) enterKey(key string) {
	t.steps = append(t.steps, step{key: key, entry: true, free: true})
}

func (t *trail) leave() { t.steps = t.steps[:len(t.steps)-1] }

// path names the place by ids and keys: nodes[gpu-node].alias, models[ornith:35b].providers.gpu-1.
func (t *trail) path() string {
	var b strings.Builder
	for i, s := range t.steps {
		switch {
		case s.entry && s.free && strings.ContainsAny(s.key, ".:"+misread):
			b.WriteString("[" + strconv.Quote(s.key) + "]")
		case s.entry && !s.free:
			b.WriteString("[" + quoted(s.key) + "]")
		case i > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// place names it in the schema: nodes[].alias, models[].providers[].
func (t *trail) place() string {
	var b strings.Builder
	for i, s := range t.steps {
		switch {
		case s.entry:
			b.WriteString("[]")
		case i > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// misread are characters that an id in a path is quoted for.
const misread = "[]\"\\ "

// quoted is an id as it stands in a path.
func quoted(id string) string {
	if id == "" || strings.ContainsAny(id, misread) {
		return strconv.Quote(id)
	}
	return id
}
