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

// each calls fn with all there is, in no order.
func (t *table[K, V]) each(fn func(K, *V)) {
	for k, v := range *t.now.Load() {
		fn(k, v)
	}
}

// drop forgets the keys for which gone says so, and returns them with what they had.
func (t *table[K, V]) drop(gone func(K) bool) map[K]*V {
	t.mu.Lock()
	defer t.mu.Unlock()
	dropped, m := map[K]*V{}, map[K]*V{}
	for k, v := range *t.now.Load() {
		if gone(k) {
			dropped[k] = v
		} else {
			m[k] = v
		}
	}
	t.now.Store(&m)
	return dropped
}
