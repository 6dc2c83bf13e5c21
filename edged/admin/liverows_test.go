package admin

import (
	"reflect"
	"testing"

	"iop/edged/adminapi"
)

// Whatever changes of a provider, its row is sent again: also a bound alone, which is behind a pointer, and a column to come.
func TestEveryChangeOfAProviderIsNoticed(t *testing.T) {
	of := func(n int) *int { return &n }
	a := adminapi.Provider{Capacity: of(1), LongCapacity: of(1)}
	if b := (adminapi.Provider{Capacity: of(1), LongCapacity: of(1)}); !sameProvider(&a, &b) {
		t.Error("equal rows are told apart")
	}
	for i := range reflect.TypeFor[adminapi.Provider]().NumField() {
		b := a
		name := reflect.TypeFor[adminapi.Provider]().Field(i).Name
		switch f := reflect.ValueOf(&b).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Uint64:
			f.SetUint(7)
		case reflect.Pointer:
			f.Set(reflect.ValueOf(of(7)))
			c := b
			reflect.ValueOf(&c).Elem().Field(i).SetZero()
			if sameProvider(&a, &c) {
				t.Errorf("%s: no bound and one are the same", name)
			}
		default:
			t.Fatalf("%s: how is a %s changed?", name, f.Kind())
		}
		if sameProvider(&a, &b) {
			t.Errorf("a change of %s goes unnoticed", name)
		}
	}
}
