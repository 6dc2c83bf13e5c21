package refresh

import (
	"reflect"

	"iop/configs"
)

// LivePart gives the running cluster part with the candidate's live changes, and nothing of those that need a restart. The
// result has not been checked: a model may name a provider that only the restart will bring.
func LivePart(running, candidate *configs.Cluster) *configs.Cluster {
	l := &merger{classes: newClasses()}
	out := &configs.Cluster{}
	l.value(reflect.ValueOf(out).Elem(), reflect.ValueOf(running).Elem(), reflect.ValueOf(candidate).Elem())
	return out
}

// merger writes a third value from two. The results share what they don't change.
type merger struct {
	trail
	classes *classes
}

func (l *merger) value(out, old, now reflect.Value) {
	place := l.place()
	if class, whole := l.classes.whole(place); whole {
		out.Set(pick(class, old, now))
		return
	}
	switch t := old.Type(); {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			l.down(keyOf(&f))
			l.value(out.Field(i), old.Field(i), now.Field(i))
			l.up(keyOf(&f))
		}
	case isList(t):
		l.list(out, old, now)
	default:
		class, _ := l.classes.of(place)
		out.Set(pick(class, old, now))
	}
}

func pick(class Class, old, now reflect.Value) reflect.Value {
	if class == Live {
		return now
	}
	return old
}

// list keeps the order of the candidate; entries that only a restart would remove stay at the end.
func (l *merger) list(out, old, now reflect.Value) {
	was, is := byID(old), byID(now)
	class, _ := l.classes.of(l.place() + "[]")
	id := idField(old.Type().Elem())
	list := reflect.MakeSlice(old.Type(), 0, max(old.Len(), now.Len()))
	for j := range now.Len() {
		i, had := was[now.Index(j).Field(id).String()]
		switch {
		case had:
			entry := reflect.New(old.Type().Elem()).Elem()
			l.enter(now.Index(j).Field(id).String())
			l.value(entry, old.Index(i), now.Index(j))
			l.leave()
			list = reflect.Append(list, entry)
		case l.classes.ofNew(l.place()+"[]", old, now.Index(j)) == Live:
			list = reflect.Append(list, now.Index(j))
		}
	}
	for i := range old.Len() {
		if _, has := is[old.Index(i).Field(id).String()]; !has && class != Live {
			list = reflect.Append(list, old.Index(i))
		}
	}
	out.Set(list)
}
