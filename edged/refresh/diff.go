package refresh

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"iop/configs"
)

// Change is one value that differs.
type Change struct {
	Path  string // by ids: nodes[gpu-node].providers[gpu-1].capacity
	Class Class
	Old   json.RawMessage // nil: was not there. A secret is a fingerprint.
	New   json.RawMessage // nil: is not there any more

	own         bool     // of the replica's own part
	node, model string   // that it is of
	providers   []string // that it is of, or that come or go with their node
}

// Diff lists what differs between two configurations, by path. Entries of lists are the same if their ids are, wherever they
// stand. Absent means what its default means.
func Diff(old, now *configs.Edge) []Change {
	d := &differ{classes: newClasses()}
	d.value(reflect.ValueOf(old).Elem(), reflect.ValueOf(now).Elem())
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

type differ struct {
	trail
	classes *classes
	changes []Change
}

func (d *differ) value(old, now reflect.Value) {
	switch t := old.Type(); {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			d.down(keyOf(&f))
			d.value(old.Field(i), now.Field(i))
			d.up(keyOf(&f))
		}
	case isList(t):
		d.list(old, now)
	case t.Kind() == reflect.Map:
		d.mapping(old, now)
	case isGroup(t) && !old.IsNil() && !now.IsNil():
		d.value(old.Elem(), now.Elem())
	default:
		d.leaf(old, now)
	}
}

func (d *differ) list(old, now reflect.Value) {
	was, is := byID(old), byID(now)
	for _, id := range ids(was, is) {
		d.enter(id)
		i, had := was[id]
		j, has := is[id]
		switch {
		case !had:
			d.addAs(d.classes.ofNew(d.place(), old, now.Index(j)), reflect.Value{}, now.Index(j))
		case !has:
			d.add(old.Index(i), reflect.Value{})
		default:
			d.value(old.Index(i), now.Index(j))
		}
		d.leave()
	}
}

// mapping compares maps of texts or of secrets; the schema has no other.
func (d *differ) mapping(old, now reflect.Value) {
	switch a := old.Interface().(type) {
	case map[string]string:
		entries(d, a, now.Interface().(map[string]string))
	case map[string]configs.Secret:
		entries(d, a, now.Interface().(map[string]configs.Secret))
	default:
		panic("refresh: no rule to compare " + old.Type().String())
	}
}

func entries[V ~string](d *differ, a, b map[string]V) {
	if maps.Equal(a, b) {
		return
	}
	keys := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		x, had := a[k]
		y, has := b[k]
		if had && has && x == y {
			continue
		}
		d.enterKey(k)
		d.add(present(x, had), present(y, has))
		d.leave()
	}
}

func present[V ~string](s V, there bool) reflect.Value {
	if !there {
		return reflect.Value{}
	}
	return reflect.ValueOf(s)
}

func (d *differ) leaf(old, now reflect.Value) {
	switch old.Kind() {
	case reflect.Slice:
		if sameTexts(old, now, d.isSet()) {
			return
		}
	case reflect.Pointer:
		if old.IsNil() && now.IsNil() || !old.IsNil() && !now.IsNil() && old.Elem().Equal(now.Elem()) {
			return
		}
	default:
		if old.Equal(now) {
			return
		}
	}
	d.add(old, now)
}

// isSet tells that the order of the texts of the list at hand means nothing.
func (d *differ) isSet() bool {
	last := d.steps[len(d.steps)-1]
	return last.key == "models" && len(d.steps) > 1
}

// sameTexts compares lists of texts; nil and empty are the same.
func sameTexts(old, now reflect.Value, set bool) bool {
	a, okA := old.Interface().([]string)
	b, okB := now.Interface().([]string)
	if !okA || !okB {
		return reflect.DeepEqual(old.Interface(), now.Interface())
	}
	if set && !slices.Equal(a, b) {
		a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	}
	return slices.Equal(a, b)
}

// add notes a change of what the trail names. An invalid value is an absent one.
func (d *differ) add(old, now reflect.Value) {
	class, _ := d.classes.of(d.place())
	d.addAs(class, old, now)
}

func (d *differ) addAs(class Class, old, now reflect.Value) {
	c := Change{Path: d.path(), Class: class, Old: d.show(old), New: d.show(now)}
	c.owners(d.steps)
	for _, v := range []reflect.Value{old, now} {
		if n, ok := entry[configs.CatalogNode](v); ok {
			for i := range n.Providers {
				c.providers = append(c.providers, n.Providers[i].ID)
			}
		}
	}
	d.changes = append(d.changes, c)
}

// owners notes of which node, provider and model the change is.
func (c *Change) owners(steps []step) {
	c.own = steps[0].key == "edge"
	if len(steps) < 2 || !steps[1].entry {
		return
	}
	switch steps[0].key {
	case "models":
		c.model = steps[1].key
	case "nodes":
		c.node = steps[1].key
		if len(steps) > 3 && steps[2].key == "providers" {
			c.providers = []string{steps[3].key}
		}
	}
}

// entry is the entry of a list that came or went.
func entry[T any](v reflect.Value) (x T, ok bool) {
	if v.IsValid() {
		x, ok = v.Interface().(T)
	}
	return x, ok
}
