package backend

import "context"

// running is a run and its gate.
type running struct {
	Run
	let chan struct{} // closed when a held run may go on
}

// hold waits until the run is let go. It reports false if ctx ended first.
func (b *Backend) hold(ctx context.Context, x *running) bool {
	b.mu.Lock()
	if b.open || b.credits > 0 {
		if !b.open {
			b.credits--
		}
		b.mu.Unlock()
		return true
	}
	b.held = append(b.held, x)
	b.mu.Unlock()
	select {
	case <-x.let:
		return true
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		if i := b.heldIndex(x); i >= 0 {
			b.held = append(b.held[:i], b.held[i+1:]...)
			return false
		}
		return true // it was let go at the same moment
	}
}

func (b *Backend) heldIndex(x *running) int {
	for i, h := range b.held {
		if h == x {
			return i
		}
	}
	return -1
}

// Let lets n held runs go, in the order in which they came to their gate; what is not there yet goes when it comes.
func (b *Backend) Let(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n > 0 && len(b.held) > 0 {
		close(b.held[0].let)
		b.held = b.held[1:]
		n--
	}
	b.credits += n
}

// LetTag lets the held runs with a tag go and reports how many there were.
func (b *Backend) LetTag(tag string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, kept := 0, b.held[:0]
	for _, x := range b.held {
		if x.Tag == tag {
			close(x.let)
			n++
		} else {
			kept = append(kept, x)
		}
	}
	b.held = kept
	return n
}

// LetAll lets every held run go, and all that come later, until HoldAgain.
func (b *Backend) LetAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
	for _, x := range b.held {
		close(x.let)
	}
	b.held = nil
}

// HoldAgain takes LetAll and unused credits of Let back.
func (b *Backend) HoldAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open, b.credits = false, 0
}
