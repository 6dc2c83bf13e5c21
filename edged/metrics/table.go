package metrics

import (
	"sync"
	"sync/atomic"
)

// table resolves labels to handles. A look-up neither locks nor allocates; a new key copies the map, which happens once
// per combination of labels.
type table[K comparable, V any] struct {
	build func(K) *V
	now   atomic.Pointer[map[K]*V]

	mu sync.Mutex // of writers
}

func newTable[K comparable, V any](build func(K) *V) *table[K, V] {
	t := &table[K, V]{build: build}
	t.now.Store(&map[K]*V{})
	return t
}

func (t *table[K, V]) get(k K) *V {
	if v, ok := (*t.now.Load())[k]; ok {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.now.Load()
	if v, ok := old[k]; ok {
		return v
	}
	m := make(map[K]*V, len(old)+1)
	for k, v := range old {
		m[k] = v
	}
	v := t.build(k)
	m[k] = v
	t.now.Store(&m)
	return v
}

// drop forgets the keys for which gone says so, and tells which they were.
func (t *table[K, V]) drop(gone func(K) bool) []K {
	t.mu.Lock()
	defer t.mu.Unlock()
	var dropped []K
	m := map[K]*V{}
	for k, v := range *t.now.Load() {
		if gone(k) {
			dropped = append(dropped, k)
		} else {
			m[k] = v
		}
	}
	t.now.Store(&m)
	return dropped
}
