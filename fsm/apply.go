package fsm

import (
	"bytes"
	"slices"
)

// applyConfig replaces the configuration. Every lease and every waiter's place outlives it.
func (m *Machine) applyConfig(c *ApplyConfig) Outcome {
	next, ok := c.Next(m.revision, m.document, &m.config)
	if !ok {
		return Outcome{Code: Refused, Refusal: RefusalConflict, Revision: m.revision}
	}
	if c.Offer != "" {
		m.offers[c.Edge] = c.Offer
	}
	if next == m.revision {
		return Outcome{Code: Applied, Revision: m.revision}
	}
	m.revision = next
	m.document = c.Document
	m.configure(c.Config)
	m.emit(Effect{Kind: EffectConfig, Revision: m.revision})
	return Outcome{Code: Applied, Revision: m.revision, Count: 1}
}

// Next returns the revision after the command, if the configuration before it was that of r: the same if it says what is
// in effect already. false: it is refused. Who reads the log without the rest of the machine asks this, too.
func (c *ApplyConfig) Next(r Revision, document []byte, config *Config) (next Revision, accepted bool) {
	if !c.Force && c.Expected != r {
		return r, false
	}
	if r > 0 && bytes.Equal(c.Document, document) && c.Config.equal(config) {
		return r, true
	}
	return r + 1, true
}

func (c *Config) equal(o *Config) bool {
	return c.Pool == o.Pool && slices.Equal(c.Nodes, o.Nodes) && slices.Equal(c.Providers, o.Providers) &&
		slices.EqualFunc(c.Principals, o.Principals, func(a, b PrincipalConfig) bool {
			return a.ID == b.ID && a.MaxInFlight == b.MaxInFlight && a.MaxQueued == b.MaxQueued && slices.Equal(a.Models, b.Models)
		}) &&
		slices.EqualFunc(c.Models, o.Models, func(a, b ModelConfig) bool {
			return a.ID == b.ID && slices.Equal(a.Candidates, b.Candidates)
		})
}

// configure makes the configuration effective: who is there first, then who can serve what, then what that means for
// the waiters.
func (m *Machine) configure(c Config) {
	waiters := m.waiters()
	for _, r := range waiters {
		m.leave(r)
	}
	clear(m.lanes)
	m.config = c
	m.configureNodes(c.Nodes)
	m.configureProviders(c.Providers)
	m.configureModels(c.Models)
	m.configurePrincipals(c.Principals)
	m.beginRound(waiters)
	for _, r := range waiters {
		m.requeueForConfig(r)
	}
	for _, id := range sortedKeys(m.providers) {
		m.stir(m.providers[id])
		m.doubt(m.providers[id])
	}
	for _, id := range sortedKeys(m.nodes) {
		if n := m.nodes[id]; n.removed {
			for _, l := range slices.Clone(n.links) {
				if l.state != LinkFenced {
					m.fence(l, ReasonRemoved, false)
				}
			}
		}
	}
}

func (m *Machine) configureNodes(ids []NodeID) {
	for _, id := range sortedKeys(m.nodes) {
		m.nodes[id].removed = true
	}
	for _, id := range ids {
		if m.nodes[id] == nil {
			m.nodes[id] = &node{id: id}
		}
		m.nodes[id].removed = false
	}
	for _, id := range sortedKeys(m.nodes) {
		if n := m.nodes[id]; n.removed {
			m.disown(n)
		}
	}
}

func (m *Machine) configureProviders(configs []ProviderConfig) {
	for _, id := range sortedKeys(m.providers) {
		m.providers[id].removed = true
	}
	for _, c := range configs {
		n := m.nodes[c.Node]
		if n == nil || n.removed {
			continue
		}
		p := m.providers[c.ID]
		if p == nil || p.node != n && p.inFlight == 0 { // under another node it is another resource
			p = &provider{}
			m.providers[c.ID] = p
		}
		p.ProviderConfig, p.node, p.removed = c, n, false
	}
	for _, id := range sortedKeys(m.providers) {
		m.forget(m.providers[id])
	}
	m.relistProviders()
}

// relistProviders tells every node which providers it owns, by id.
func (m *Machine) relistProviders() {
	for _, id := range sortedKeys(m.nodes) {
		m.nodes[id].providers = nil
	}
	for _, id := range sortedKeys(m.providers) {
		p := m.providers[id]
		p.node.providers = append(p.node.providers, p)
	}
}

// forget drops a provider that the configuration no longer has and that no lease names.
func (m *Machine) forget(p *provider) {
	if !p.removed || p.inFlight > 0 {
		return
	}
	delete(m.providers, p.ID)
	if i := slices.Index(p.node.providers, p); i >= 0 {
		p.node.providers = slices.Delete(p.node.providers, i, i+1)
	}
}

func (m *Machine) configureModels(configs []ModelConfig) {
	old := m.models
	m.models = make(map[ModelID]*model, len(configs))
	for _, c := range configs {
		mo := &model{id: c.ID}
		if before := old[c.ID]; before != nil {
			mo.cursor = before.cursor
		}
		for _, can := range c.Candidates {
			if p := m.providers[can.Provider]; p != nil && !p.removed {
				mo.candidates = append(mo.candidates, &candidate{provider: p, served: can.Served})
			}
		}
		slices.SortFunc(mo.candidates, func(a, b *candidate) int {
			if a.provider.ID < b.provider.ID {
				return -1
			}
			return 1
		})
		m.models[c.ID] = mo
	}
}

// requeueForConfig gives a waiter its lane and deadline under the new configuration, or ends it.
func (m *Machine) requeueForConfig(r *request) {
	var fit []*candidate
	var dropped string
	why := RefusalModelNotFound
	if mo := m.models[r.model]; mo != nil {
		fit, dropped, why = m.filter(mo, r)
	}
	m.join(r, fit, dropped)
	if len(fit) == 0 && r.session != nil && (why != RefusalUnavailable || !r.unfinished()) {
		m.end(r, why)
		return
	}
	m.setDeadline(r)
}
