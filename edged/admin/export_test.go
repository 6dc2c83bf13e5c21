package admin

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// NewImpatient makes the handler of the admin listener, with that much patience with callers that take nothing.
func NewImpatient(o Options, patience time.Duration) http.Handler {
	g := newGuard(newAPI(o))
	g.patience = patience
	return g
}

// Feed is a feed of the live view without its viewers' streams.
type Feed struct {
	a *api
	f *feed
}

// NewFeed makes one that one viewer looks at.
func NewFeed(o Options, every time.Duration) *Feed {
	f := &Feed{a: newAPI(o), f: &feed{every: every}}
	f.f.enter()
	return f
}

// Next gives the events for a viewer that has all up to seen, as text.
func (f *Feed) Next(seen uint64, now time.Time) ([]string, uint64, error) {
	frames, seq, err := f.f.next(f.a, seen, now)
	var out []string
	for i := range frames {
		var b strings.Builder
		for _, p := range frames[i].parts("allowed") {
			b.Write(p)
		}
		out = append(out, b.String())
	}
	return out, seq, err
}

// Tick computes the frame of a moment and encodes no whole.
func (f *Feed) Tick(now time.Time) error {
	f.f.mu.Lock()
	defer f.f.mu.Unlock()
	return f.f.compute(f.a, now)
}

// Leave is the end of the viewer. It tells whether anything is still kept.
func (f *Feed) Leave() bool {
	f.f.leave()
	return f.f.rows.providers != nil || f.f.changes != nil || f.f.whole.before != nil
}

// Changes are the method and path of all routes that change something.
func Changes(o Options) (list [][2]string) {
	for _, x := range newAPI(o).table() {
		if x.change != nil {
			list = append(list, [2]string{x.method, x.path})
		}
	}
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[1], b[1]) })
	return list
}

// Brake is one at a time that the test sets.
type Brake struct{ b brake }

// Wrong is a try with a wrong token; it tells how long the address has to wait afterwards.
func (b *Brake) Wrong(from string, now time.Time) (first bool, wait time.Duration) {
	first = b.b.note(from, now)
	return first, b.b.wait(from, now)
}

// Wait tells how long an address has to.
func (b *Brake) Wait(from string, now time.Time) time.Duration { return b.b.wait(from, now) }

// Size is how many addresses are kept.
func (b *Brake) Size() int { return len(b.b.tried) }

// BrakeMax is how many may be.
const BrakeMax = brakeMax

// Viewers takes places of viewers.
func ViewersMax() int { return viewersMax }
