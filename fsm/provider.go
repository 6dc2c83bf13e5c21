package fsm

// provider is a resource under a node.
type provider struct {
	ProviderConfig
	node         *node
	removed      bool
	draining     bool
	health       Health
	cause        string
	inFlight     int
	longInFlight int // leases of class long, whether or not the provider counts long slots
	granted      uint64
	returned     uint64

	lanes []laneAt // lanes with waiters that have it as a candidate
	dirty bool     // in Machine.dirty: capacity may have appeared
	first rank     // of a dirty one: the first waiter that it could take is this one or a later one
	dim   bool     // in Machine.dim: it may have ceased to be live for somebody
}

// candidate is a provider as one model sees it.
type candidate struct {
	provider *provider
	served   string
}

// model is an external model key. Its candidates are sorted by provider id.
type model struct {
	id         ModelID
	candidates []*candidate
	cursor     ProviderID
}

// open tells whether the provider may take leases at all, slots and links apart.
func (p *provider) open() bool {
	return p.Enabled && !p.removed && p.health == Healthy && !p.drained()
}

func (p *provider) drained() bool { return p.draining || p.node.draining }

// free tells whether it has the slots that a request of the class needs.
func (p *provider) free(c Class) bool {
	if p.Capacity > 0 && p.inFlight >= p.Capacity {
		return false
	}
	return c != ClassLong || p.LongCapacity == LongUncounted || p.longInFlight < p.LongCapacity
}

// live tells whether the provider could take leases of the session, now or when a slot frees.
func (p *provider) live(s *session) bool { return p.open() && p.node.ready(s) != nil }

// recovering tells whether the provider is not live for the session, but expected to be.
func (p *provider) recovering(s *session) bool {
	return p.open() && p.node.ready(s) == nil && (s.graceUntil > 0 || p.node.pending(s) != nil)
}

// fits tells whether the provider could ever take the request, and if not, why.
func (p *provider) fits(r *request) string {
	switch {
	case r.excludes(p.ID):
		return WhyExcluded
	case p.Can&r.needs != r.needs:
		return WhyIncapable
	case p.ContextWindow > 0 && r.inputTokens > p.ContextWindow, r.class == ClassLong && p.LongCapacity == 0:
		return WhyTooSmall
	}
	return ""
}

// filter returns the model's candidates that fit the request; dropped names those that do not. The result is only
// valid until the next call. It allocates nothing when all fit.
func (m *Machine) filter(mo *model, r *request) (fit []*candidate, dropped string, why Refusal) {
	first := -1
	for i, c := range mo.candidates {
		if c.provider.fits(r) != "" {
			first = i
			break
		}
	}
	if first < 0 {
		return mo.candidates, "", RefusalUnavailable
	}
	fit = append(m.scratch[:0], mo.candidates[:first]...)
	why = RefusalUnavailable
	refusedBefore := false
	for _, c := range mo.candidates[first:] {
		switch c.provider.fits(r) {
		case "":
			fit = append(fit, c)
			continue
		case WhyExcluded:
			refusedBefore = true
		case WhyTooSmall:
			why = RefusalContextTooLong
		case WhyIncapable:
			if why == RefusalUnavailable {
				why = RefusalUnsupported
			}
		}
		dropped += string(c.provider.ID) + "\x00"
	}
	m.scratch = fit
	if refusedBefore {
		why = RefusalUnavailable // it would fit, had its provider run it: no fault of the request
	}
	return fit, dropped, why
}

// choose picks the dispatchable candidate with the fewest leases; ties go to the lowest priority number, then round
// the model's candidates in the order of their ids. It returns nil if none is dispatchable.
func (mo *model) choose(candidates []*candidate, s *session, class Class) *candidate {
	var first, next *candidate // the first of the best, and the first of the best behind the cursor
	for _, c := range candidates {
		p := c.provider
		if !p.open() || !p.free(class) || p.node.ready(s) == nil {
			continue
		}
		if first != nil {
			b := first.provider
			if p.inFlight > b.inFlight || p.inFlight == b.inFlight && p.Priority > b.Priority {
				continue
			}
			if p.inFlight < b.inFlight || p.Priority < b.Priority {
				first = nil
			}
		}
		if first == nil {
			first, next = c, nil
		}
		if next == nil && p.ID > mo.cursor {
			next = c
		}
	}
	if next != nil {
		return next
	}
	return first
}

// hope tells what the session's requests can expect of the candidates when none is dispatchable: 0 if one is live or
// recovering, else why not.
func hope(candidates []*candidate, s *session) Refusal {
	why := RefusalUnavailable
	for _, c := range candidates {
		p := c.provider
		if p.live(s) || p.recovering(s) {
			return RefusalNone
		}
		if p.drained() && p.Enabled && !p.removed && p.health == Healthy && p.node.ready(s) != nil {
			why = RefusalDraining
		}
	}
	return why
}
