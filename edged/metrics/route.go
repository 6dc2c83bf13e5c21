package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nameSet is what the configuration has; nothing else becomes a label.
type nameSet struct{ models, providers map[string]bool }

// SetNames tells the ids that the configuration has. The series of models and providers that are no longer among them
// vanish; those of the others keep their counts. It may lock and allocate.
func (m *Metrics) SetNames(models, providers []string) {
	n := &nameSet{models: setOf(models), providers: setOf(providers)}
	m.names.Store(n)
	m.past.mu.Lock()
	defer m.past.mu.Unlock()
	for _, r := range m.routes.drop(func(k routeKey) bool { return !n.model(k.model) || !n.provider(k.provider) }) {
		m.past.addRoute(r)
	}
	for k, x := range m.models.drop(func(k string) bool { return !n.model(k) }) {
		m.past.addModel(x)
		for _, v := range []*prometheus.HistogramVec{m.duration, m.firstByte, m.wait} {
			v.DeleteLabelValues(k)
		}
	}
	for _, u := range m.usages.drop(func(k UsageKey) bool { return !n.model(k.Model) || !n.provider(k.Provider) }) {
		m.past.addUsage(u)
	}
}

func (n *nameSet) model(id string) bool    { return id == Unknown || n.models[id] }
func (n *nameSet) provider(id string) bool { return id == None || n.providers[id] }

func setOf(ids []string) map[string]bool {
	s := make(map[string]bool, len(ids))
	for _, id := range ids {
		s[id] = true
	}
	return s
}

type routeKey struct{ model, provider string }

// Route counts the requests of one model on one provider.
type Route struct{ ended [outcomes]atomic.Uint64 }

// Route returns the counters for a model and a provider; "" as provider = none. Unknown names get the shared labels
// Unknown and None.
func (m *Metrics) Route(model, provider string) *Route {
	n := m.names.Load()
	if !n.models[model] {
		model = Unknown
	}
	if !n.providers[provider] {
		provider = None
	}
	return m.routes.get(routeKey{model, provider})
}

// Ended counts a request.
func (r *Route) Ended(o Outcome) {
	if o >= outcomes {
		o = OutcomeInternal
	}
	r.ended[o].Add(1)
}

// Model observes the times of one model's requests.
type Model struct{ duration, firstByte, wait prometheus.Observer }

// Model returns the observers of a model; of Unknown if the configuration does not have it.
func (m *Metrics) Model(id string) *Model {
	if !m.names.Load().models[id] {
		id = Unknown
	}
	return m.models.get(id)
}

// Duration observes the time from a request's arrival to its end. traceID, if there is one, becomes its exemplar, as of the others.
func (x *Model) Duration(d time.Duration, traceID string) { observe(x.duration, d, traceID) }

// FirstByte observes the time from a request's arrival to the backend's first byte.
func (x *Model) FirstByte(d time.Duration, traceID string) { observe(x.firstByte, d, traceID) }

// Wait observes the time from admission to the grant.
func (x *Model) Wait(d time.Duration, traceID string) { observe(x.wait, d, traceID) }

func (m *Metrics) newModel(id string) *Model {
	return &Model{
		duration: m.duration.WithLabelValues(id), firstByte: m.firstByte.WithLabelValues(id),
		wait: m.wait.WithLabelValues(id),
	}
}

// UsageKey says whose tokens were used where. Principal and Token are references of the configuration, never a raw
// token; "" = none.
type UsageKey struct{ Principal, Token, Model, Provider string }

// Usage counts tokens.
type Usage struct{ in, out, untold atomic.Uint64 }

// Usage returns the token counters for a key.
func (m *Metrics) Usage(k UsageKey) *Usage {
	n := m.names.Load()
	if !n.models[k.Model] {
		k.Model = Unknown
	}
	if !n.providers[k.Provider] {
		k.Provider = None
	}
	if k.Principal == "" {
		k.Principal = None
	}
	if k.Token == "" {
		k.Token = None
	}
	return m.usages.get(k)
}

// Add counts tokens that a backend reported; negative numbers count as 0.
func (u *Usage) Add(in, out int64) {
	u.in.Add(uint64(max(in, 0)))
	u.out.Add(uint64(max(out, 0)))
}

// Untold counts a request that was answered and whose backend told no usage.
func (u *Usage) Untold() { u.untold.Add(1) }
