package storage

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"iop/fsm"
)

// watchBuffer is how many effects wait for being spread to the watchers; beyond it, they miss some.
const watchBuffer = 4096

// watchers spread effects to observers. An observer that does not read misses effects and costs nobody anything: the
// dispatcher only copies into a bounded buffer, and a goroutine of its own does the spreading.
type watchers struct {
	kick chan struct{}
	done chan struct{}

	missed atomic.Uint64 // effects, each counted for each observer

	mu      sync.Mutex
	list    []*watcher // replaced, never changed in place
	gone    []*watcher // to be closed
	waiting []fsm.Effect
	closed  bool
}

type watcher struct {
	to     chan fsm.Effect
	forget func() bool // ends waiting for its context
}

func newWatchers() *watchers {
	return &watchers{kick: make(chan struct{}, 1), done: make(chan struct{})}
}

// add returns a channel of n effects; it is closed when ctx ends or the store closes.
func (w *watchers) add(ctx context.Context, n int) <-chan fsm.Effect {
	x := &watcher{to: make(chan fsm.Effect, max(n, 1))}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(x.to)
		return x.to
	}
	w.list = append(slices.Clip(w.list), x)
	x.forget = context.AfterFunc(ctx, func() { w.remove(x) })
	return x.to
}

func (w *watchers) remove(x *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.list, x); i >= 0 {
		w.list = slices.Delete(slices.Clone(w.list), i, i+1)
		w.gone = append(w.gone, x)
		w.wake()
	}
}

func (w *watchers) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// publish never blocks.
func (w *watchers) publish(effects []fsm.Effect) {
	if len(effects) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) == 0 || w.closed {
		return
	}
	fit := min(len(effects), watchBuffer-len(w.waiting))
	w.waiting = append(w.waiting, effects[:fit]...)
	w.missed.Add(uint64((len(effects) - fit) * len(w.list)))
	w.wake()
}

// run spreads until stop. Only it sends to the watchers' channels, and closes them.
func (w *watchers) run() {
	defer close(w.done)
	var spare []fsm.Effect
	for range w.kick {
		w.mu.Lock()
		list, work, gone, closed := w.list, w.waiting, w.gone, w.closed
		w.waiting, w.gone = spare[:0], nil
		w.mu.Unlock()
		for _, x := range list {
			w.missed.Add(uint64(spread(x, work)))
		}
		spare = work
		for _, x := range gone {
			close(x.to)
		}
		if closed {
			return
		}
	}
}

// spread returns how many effects the watcher misses.
func spread(x *watcher, effects []fsm.Effect) int {
	for i := range effects {
		select {
		case x.to <- effects[i]:
		default:
			return len(effects) - i // full: it misses the rest of these
		}
	}
	return 0
}

// stop closes all channels; it returns when that is done.
func (w *watchers) stop() {
	w.mu.Lock()
	w.closed = true
	for _, x := range w.list {
		x.forget()
	}
	w.gone = append(w.gone, w.list...)
	w.list = nil
	w.mu.Unlock()
	w.wake()
	<-w.done
}
