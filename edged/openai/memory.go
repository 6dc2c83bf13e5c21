package openai

import (
	"container/list"
	"context"
	"sync"
	"time"

	"iop/edged/openai/respond"
)

// Defaults of a MemoryStore.
const (
	memoryBytes = 64 << 20
	memoryAge   = 24 * time.Hour
)

// eventBytes is what an event takes beside its text.
const eventBytes = 64

// MemoryStore is this edge's own Store: in memory, bounded by bytes and age, gone when the process ends. The oldest
// responses that have ended make room for new ones; those that run stay.
type MemoryStore struct {
	bytes int64
	age   time.Duration

	mu   sync.Mutex
	used int64
	by   map[string]*list.Element
	all  *list.List // of *kept, oldest first
}

// kept is a response in memory.
type kept struct {
	stored Stored
	since  time.Time
	size   int64
	events []respond.Event
	news   chan struct{} // closed when something changes
}

// NewMemoryStore returns an empty store for at most bytes (0 = 64 MiB) and age (0 = 24 h).
func NewMemoryStore(bytes int64, age time.Duration) *MemoryStore {
	if bytes <= 0 {
		bytes = memoryBytes
	}
	orSpan(&age, memoryAge)
	return &MemoryStore{bytes: bytes, age: age, by: map[string]*list.Element{}, all: list.New()}
}

func keyIn(principal, id string) string { return principal + "\x00" + id }

// Keep stores a response that has ended.
func (s *MemoryStore) Keep(_ context.Context, r *Stored) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(keyIn(r.Principal, r.ID))
	return s.add(r)
}

// Submit stores a background response before it runs.
func (s *MemoryStore) Submit(_ context.Context, r *Stored) (before *Stored, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(r.Principal, r.ID); k != nil {
		was := k.stored
		return &was, nil
	}
	return nil, s.add(r)
}

func (s *MemoryStore) add(r *Stored) error {
	k := &kept{stored: *r, since: time.Now(), size: r.size(), news: make(chan struct{})}
	k.events, k.stored.Events = r.Events, nil
	k.size += eventsSize(r.Events)
	if !s.room(k.size, nil) {
		return ErrStoreFull
	}
	s.used += k.size
	s.by[keyIn(r.Principal, r.ID)] = s.all.PushBack(k)
	return nil
}

func eventsSize(list []respond.Event) (n int64) {
	for i := range list {
		n += int64(len(list[i].Body)) + eventBytes
	}
	return n
}

// room makes room for more bytes: what is too old goes, and then the oldest that have ended, but not spare.
func (s *MemoryStore) room(more int64, spare *kept) bool {
	if more > s.bytes {
		return false
	}
	for e := s.all.Front(); e != nil; {
		k, next := e.Value.(*kept), e.Next()
		if s.used+more <= s.bytes && time.Since(k.since) < s.age {
			break
		}
		if k.stored.Status.Final() && k != spare {
			s.drop(keyIn(k.stored.Principal, k.stored.ID))
		}
		e = next
	}
	return s.used+more <= s.bytes
}

func (s *MemoryStore) drop(key string) {
	e := s.by[key]
	if e == nil {
		return
	}
	k := s.all.Remove(e).(*kept)
	s.used -= k.size
	delete(s.by, key)
	close(k.news)
}

// find returns a response that is not too old, or nil.
func (s *MemoryStore) find(principal, id string) *kept {
	e := s.by[keyIn(principal, id)]
	if e == nil {
		return nil
	}
	k := e.Value.(*kept)
	if k.stored.Status.Final() && time.Since(k.since) >= s.age {
		s.drop(keyIn(principal, id))
		return nil
	}
	return k
}

// Progress adds to a background response.
func (s *MemoryStore) Progress(_ context.Context, principal, id string, p Progress) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(principal, id)
	switch {
	case k == nil:
		return ErrNoResponse
	case k.stored.Status.Final():
		return ErrEnded
	}
	more := eventsSize(p.Events)
	if p.Object != nil {
		more += int64(len(p.Object) - len(k.stored.Object))
	}
	// The end is kept even beyond the bound: it must be told, and what has ended makes room for others.
	if !s.room(more, k) && !p.Status.Final() {
		return ErrStoreFull
	}
	s.used, k.size = s.used+more, k.size+more
	k.events = append(k.events, p.Events...)
	k.stored.Status = p.Status
	if p.Object != nil {
		k.stored.Object = p.Object
	}
	close(k.news)
	k.news = make(chan struct{})
	return nil
}

// Get returns a response.
func (s *MemoryStore) Get(_ context.Context, principal, id string) (*Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(principal, id)
	if k == nil {
		return nil, ErrNoResponse
	}
	r := k.stored
	return &r, nil
}

// Delete forgets a response.
func (s *MemoryStore) Delete(_ context.Context, principal, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(principal, id) == nil {
		return ErrNoResponse
	}
	s.drop(keyIn(principal, id))
	return nil
}

// Events returns events from a sequence number on, and waits for one.
func (s *MemoryStore) Events(ctx context.Context, principal, id string, from int64) ([]respond.Event, bool, error) {
	for {
		s.mu.Lock()
		k := s.find(principal, id)
		if k == nil {
			s.mu.Unlock()
			return nil, true, ErrNoResponse
		}
		events, over, news := k.events, k.stored.Status.Final(), k.news
		s.mu.Unlock()
		if from < int64(len(events)) {
			return events[max(from, 0):len(events):len(events)], over, nil
		}
		if over {
			return nil, true, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}
