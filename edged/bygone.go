package edged

import (
	"bytes"
	"context"
	"errors"
	"time"

	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// The configurations before the present one are found in the log, from its end back: the offers that are there are put
// into effect one after the other, and have to come to what is in effect now.
//
//	log   … ─ offer ────── offer ───────── offer ──── │ now
//	             ◀── search, in steps ────────────────┤
//	             └─ in effect ─┴─ refused ────┴─ = now?
//
// If the log was cut, what was in effect before its first offer is not known. It is inferred: that revision from which
// the offers come to the present one.

const (
	// searchFor is how long a call may read. What is older then is read by the next one.
	searchFor = 3 * time.Second
	// searchFew and searchMany are how many entries are read at once: more as long as nothing is found.
	searchFew, searchMany = 64, 8192
	// offersMax and offerBytesMax bound what is kept of what was found: offers that change nothing are among them.
	offersMax     = 3 * revisionsMax
	offerBytesMax = 2 * revisionBytesMax
	// searchPause is how long a search leaves the disk and the core to others after searchMany entries.
	searchPause = time.Millisecond
)

// sourceEarlier is the source of a revision that came before what the log still has.
const sourceEarlier = "earlier"

// settled is what is in effect from some entry of the log on.
type settled struct {
	revision fsm.Revision
	document []byte
	config   fsm.Config
	index    uint64    // of that entry, or of a later one before anything else came into effect
	seen     time.Time // when this edge saw it first, if it did
}

// after returns what is in effect after an offer.
func (s settled) after(a *storage.Applied) settled {
	next, _ := a.Command.Next(s.revision, s.document, &s.config)
	if next == s.revision {
		return s
	}
	return settled{revision: next, document: a.Command.Document, config: a.Command.Config, index: a.Index}
}

// search is one way back through the log.
type search struct {
	now    settled
	floor  uint64            // what is at or below this entry was searched before
	from   uint64            // everything from this entry to now.index was searched
	step   uint64            // how many entries are next
	offers []storage.Applied // that were found, in order
	bytes  int               // of their documents
}

// read looks for what the log has and was not told yet. whole: there is nothing more to find.
func (r *revisions) read(ctx context.Context) (whole bool, err error) {
	now := r.now()
	switch {
	case now.revision == 0 || r.search == nil && r.known != nil && r.known.revision == now.revision:
		return true, nil
	case r.search == nil:
		r.search = &search{now: now, from: now.index + 1, step: searchFew}
		if r.known != nil {
			r.search.floor = r.known.index
		}
	}
	reading, cancel := context.WithTimeout(ctx, searchFor)
	defer cancel()
	past, err := r.past(reading, now.index)
	if past == nil {
		return false, err
	}
	if err = r.search.forward(reading, past, now); err == nil {
		whole, err = r.search.back(reading, past, r.known)
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil, reading.Err() != nil, errors.Is(err, storage.ErrUnreachable): // cut meanwhile: again, next time
	default:
		return false, err
	}
	list := r.search.tell(r.known)
	if list == nil {
		if list, err = r.search.nothing(ctx, past, now.seen); err != nil {
			return false, err
		}
	}
	r.take(list)
	if whole {
		r.known, r.search = &r.search.now, nil
	}
	return whole, nil
}

// now returns what is in effect, and an entry shortly after that which brought it, if this edge has seen that.
func (r *revisions) now() (s settled) {
	r.store.View(func(m *fsm.Machine) {
		s = settled{revision: m.Revision(), document: m.Document(), config: m.Config(), index: m.Index()}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notice.revision == s.revision {
		s.index, s.seen = min(s.index, r.notice.index), r.notice.at
	}
	return s
}

// past opens the history when it reaches as far as the machine: the one is a moment behind the other.
func (r *revisions) past(ctx context.Context, index uint64) (*storage.Past, error) {
	for {
		p, err := r.store.Past()
		if err != nil || p.End() >= index {
			return p, err
		}
		if !wait(ctx, time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// take replaces what is told beyond what is known.
func (r *revisions) take(list []revision) {
	r.mu.Lock()
	keep := 0
	for r.known != nil && keep < len(r.seen) && r.seen[keep].Revision <= uint64(r.known.revision) {
		keep++
	}
	for i := range r.seen[keep:] {
		r.bytes -= len(r.seen[keep+i].document)
	}
	r.seen = r.seen[:keep]
	r.mu.Unlock()
	for i := range list {
		if r.known == nil || list[i].Revision > uint64(r.known.revision) {
			r.add(list[i])
		}
	}
}

// forward goes on to what came into effect since the search was begun.
func (s *search) forward(ctx context.Context, past *storage.Past, now settled) error {
	if now.revision == s.now.revision {
		return nil
	}
	list, err := past.Applied(ctx, s.now.index+1, now.index)
	if err != nil {
		return err
	}
	s.found(nil, list)
	s.now = now
	return nil
}

// found takes offers that are older and newer than those it has.
func (s *search) found(older, newer []storage.Applied) {
	s.offers = append(append(older, s.offers...), newer...)
	s.bytes = 0
	for i := len(s.offers) - 1; i >= 0; i-- {
		c := s.offers[i].Command
		if i+1 < len(s.offers) && bytes.Equal(c.Document, s.offers[i+1].Command.Document) {
			c.Document = s.offers[i+1].Command.Document // an edge that starts offers what is in effect, as a rule
			continue
		}
		s.bytes += len(c.Document)
	}
}

// back goes back as far as there is something to find: to what was searched before, or the log's beginning.
func (s *search) back(ctx context.Context, past *storage.Past, known *settled) (done bool, err error) {
	for {
		if _, ok := s.follow(known, 0); ok || len(s.offers) >= offersMax || s.bytes >= offerBytesMax {
			return true, nil
		}
		first := past.Info().FirstIndex
		if first == 0 || s.from <= max(first, s.floor+1) {
			return true, nil
		}
		to := s.from - 1
		from := max(first, s.floor+1, s.from-min(s.step, s.from))
		list, err := past.Applied(ctx, from, to)
		if err != nil {
			return false, err
		}
		s.from, s.step = from, min(2*s.step, searchMany)
		if len(list) > 0 {
			s.found(list, nil)
			s.step = searchFew
		}
		if s.step == searchMany && !wait(ctx, searchPause) {
			return false, ctx.Err()
		}
	}
}

// follow puts the offers from the nth on into effect, one after the other. It tells what came of them if that is what is
// in effect now.
func (s *search) follow(start *settled, n int) (told []revision, ok bool) {
	if start == nil {
		return nil, false
	}
	at := *start
	for i := n; i < len(s.offers); i++ {
		a := &s.offers[i]
		next := at.after(a)
		if next.revision == at.revision {
			continue
		}
		at = next
		source := "refresh"
		if a.Command.Force {
			source = "start"
		}
		told = append(told, tellOf(&at, source, string(a.Command.Edge), a.Time))
	}
	return told, at.revision == s.now.revision && bytes.Equal(at.document, s.now.document)
}

// tell tells what the offers came to; nil = nothing that would be what is in effect.
func (s *search) tell(known *settled) []revision {
	if told, ok := s.follow(known, 0); ok {
		return told
	}
	if s.from == 1 {
		if told, ok := s.follow(&settled{}, 0); ok {
			return told
		}
	}
	for i := range s.offers {
		if told, ok := s.infer(i); ok {
			return told
		}
	}
	return nil
}

// infer begins with the offer at i: it is tried which revision was in effect after it. Of those that fit a start's is
// the lowest: with it, the fewest of the later offers were refused. A refresh has come into effect, if that fits.
func (s *search) infer(i int) (told []revision, ok bool) {
	a := &s.offers[i]
	later := fsm.Revision(len(s.offers) - i - 1)
	low, high := s.now.revision-min(later, s.now.revision-1), s.now.revision
	if !a.Command.Force { // it came into effect, or was in effect; to be refused, another had to be faster by a moment
		low, high = max(low, a.Command.Expected), min(high, a.Command.Expected+1)
	}
	for n := fsm.Revision(0); low+n <= high; n++ {
		x := low + n
		if !a.Command.Force { // nearly always it came into effect
			x = high - n
		}
		start := settled{revision: x, document: a.Command.Document, config: a.Command.Config, index: a.Index}
		told, ok := s.follow(&start, i+1)
		if !ok {
			continue
		}
		source, edge := sourceEarlier, "" // what it offered may have been in effect before
		if !a.Command.Force && x == a.Command.Expected+1 {
			source, edge = "refresh", string(a.Command.Edge)
		}
		return append([]revision{tellOf(&start, source, edge, a.Time)}, told...), true
	}
	return nil, false
}

// nothing tells what is in effect, if the log does not say where it came from: it is known from where it was read on.
func (s *search) nothing(ctx context.Context, past *storage.Past, seen time.Time) ([]revision, error) {
	now := s.now
	if len(s.offers) == 0 {
		index, at, err := past.First(ctx, s.from)
		if err != nil {
			return nil, err
		}
		if index != 0 && index <= now.index {
			now.index, seen = index, at
		}
	}
	return []revision{tellOf(&now, sourceEarlier, "", seen)}, nil
}

func tellOf(s *settled, source, edge string, at time.Time) revision {
	return revision{
		ConfigRevision: adminapi.ConfigRevision{Revision: uint64(s.revision), Index: s.index, Time: at, Edge: edge, Source: source},
		document:       s.document,
	}
}
