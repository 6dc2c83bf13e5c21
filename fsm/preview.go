package fsm

import (
	"cmp"
	"slices"
)

// Preview tells what a configuration would do to what is there. It changes nothing.
type Preview struct {
	Affected int            // waiters that would lose or gain a candidate
	Waiters  []WaiterChange // the first of them
	Over     []OverCapacity // by provider id
}

// WaiterChange is how a waiter's candidates would change. A candidate is enabled and could take the request at some time.
type WaiterChange struct {
	Request RequestID
	Model   ModelID
	Gains   []ProviderID
	Loses   []ProviderID
}

// OverCapacity is a provider that has more in flight than a configuration would give it.
type OverCapacity struct {
	Provider     ProviderID
	InFlight     int
	Capacity     int // 0 = unlimited
	LongInFlight int
	LongCapacity int // LongUncounted = not counted
}

// Preview compares a configuration with the one in effect. It names at most limit waiters.
func (m *Machine) Preview(c *Config, limit int) Preview {
	v := Preview{Waiters: []WaiterChange{}, Over: []OverCapacity{}}
	next := previewModels(c)
	for _, r := range m.waiters() {
		w, changed := m.previewWaiter(r, next[r.model])
		if !changed {
			continue
		}
		if v.Affected++; v.Affected <= limit {
			v.Waiters = append(v.Waiters, w)
		}
	}
	for i := range c.Providers {
		p := m.providers[c.Providers[i].ID]
		if p == nil {
			continue
		}
		if o := (OverCapacity{p.ID, p.inFlight, c.Providers[i].Capacity, p.longInFlight, c.Providers[i].LongCapacity}); o.over() {
			v.Over = append(v.Over, o)
		}
	}
	return v
}

func (o *OverCapacity) over() bool {
	return o.Capacity > 0 && o.InFlight > o.Capacity || o.LongCapacity != LongUncounted && o.LongInFlight > o.LongCapacity
}

// previewModels gives the candidates of each model as configureModels would make them, in the same order.
func previewModels(c *Config) map[ModelID][]*provider {
	providers := make(map[ProviderID]*provider, len(c.Providers))
	for i := range c.Providers {
		providers[c.Providers[i].ID] = &provider{ProviderConfig: c.Providers[i]}
	}
	models := make(map[ModelID][]*provider, len(c.Models))
	for _, mo := range c.Models {
		var list []*provider
		for _, can := range mo.Candidates {
			if p := providers[can.Provider]; p != nil {
				list = append(list, p)
			}
		}
		slices.SortFunc(list, func(a, b *provider) int { return cmp.Compare(a.ID, b.ID) })
		models[mo.ID] = list
	}
	return models
}

// previewWaiter walks both lists of candidates, which are sorted by id.
func (m *Machine) previewWaiter(r *request, next []*provider) (w WaiterChange, changed bool) {
	var now []*candidate
	if mo := m.models[r.model]; mo != nil {
		now = mo.candidates
	}
	w = WaiterChange{Request: r.id, Model: r.model}
	for i, j := 0, 0; i < len(now) || j < len(next); {
		switch {
		case j == len(next) || i < len(now) && now[i].provider.ID < next[j].ID:
			if now[i].provider.serves(r) {
				w.Loses = append(w.Loses, now[i].provider.ID)
			}
			i++
		case i == len(now) || next[j].ID < now[i].provider.ID:
			if next[j].serves(r) {
				w.Gains = append(w.Gains, next[j].ID)
			}
			j++
		default:
			switch had, has := now[i].provider.serves(r), next[j].serves(r); {
			case had && !has:
				w.Loses = append(w.Loses, next[j].ID)
			case has && !had:
				w.Gains = append(w.Gains, next[j].ID)
			}
			i, j = i+1, j+1
		}
	}
	return w, len(w.Gains)+len(w.Loses) > 0
}

// serves tells whether the configuration lets the provider take the request at some time.
func (p *provider) serves(r *request) bool { return p.Enabled && !p.removed && p.fits(r) == "" }
