package noded

import (
	"context"
	"sync"
	"time"

	"iop/noded/adapter"
	"iop/proto/nodepb"
)

// glance is what a backend told of itself last.
type glance struct {
	mu   sync.Mutex // held while it is asked: one at a time
	at   time.Time
	seen *adapter.Glance
}

// glanceFresh is how long what a backend told is told again without asking: a hundred people who look are one.
const glanceFresh = time.Second

// look asks the provider's backend what it tells of itself, not more often than glanceFresh allows.
func (w *watch) look(ctx context.Context) *adapter.Glance {
	g := &w.glance
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil || time.Since(g.at) >= glanceFresh {
		p := w.station.plan
		g.seen = adapter.Look(ctx, adapter.OpenAIConfig{BaseURL: p.config.GetBaseUrl(), APIKey: p.key}, w.kind)
		g.at = time.Now()
	}
	return g.seen
}

// Look says what a provider's backend tells of itself, for people: see adapter.Look.
func (h *hands) Look(ctx context.Context, provider string) *nodepb.BackendStatus {
	s := &nodepb.BackendStatus{Provider: provider}
	w := h.current.Load().watches[provider]
	if w == nil {
		s.Error = "this node has no provider " + provider
		return s
	}
	g := w.look(ctx)
	s.Numbers, s.Words, s.Models, s.Sources, s.Error = g.Numbers, g.Words, g.Models, g.Sources, g.Error
	return s
}
