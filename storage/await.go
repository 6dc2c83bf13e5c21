package storage

import (
	"context"
	"sync"
)

// waits are those who wait for this replica to have applied an entry.
type waits struct {
	mu    sync.Mutex
	last  uint64
	moved chan struct{} // closed with the next entry; nil = nobody asked
}

// reached tells of an entry.
func (w *waits) reached(index uint64) {
	w.mu.Lock()
	w.last = index
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
	w.mu.Unlock()
}

// wait returns when the entry was applied.
func (w *waits) wait(ctx context.Context, index uint64) error {
	for {
		w.mu.Lock()
		if w.last >= index {
			w.mu.Unlock()
			return nil
		}
		if w.moved == nil {
			w.moved = make(chan struct{})
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
