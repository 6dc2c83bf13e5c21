package fsm

import "slices"

// wait puts a request into the queue: attached if it has a session, else detached.
func (m *Machine) wait(r *request, fit []*candidate, dropped string) {
	m.pending++
	if r.class == ClassLong {
		m.longPending++
	}
	if r.response != nil {
		m.background++
	}
	r.state = StateWaiting
	if r.session == nil {
		r.state = StateDetached
		m.detached++
		m.addOrphan(r)
	}
	m.queues(r.who)
	m.join(r, fit, dropped)
	m.setDeadline(r)
}

// unwait takes a waiter out of every line of the queue; it stays a known request.
func (m *Machine) unwait(r *request) {
	m.pending--
	if r.class == ClassLong {
		m.longPending--
	}
	if r.response != nil {
		m.background--
	}
	if r.state == StateDetached {
		m.detached--
		m.dropOrphan(r)
	}
	m.leave(r)
	m.unqueues(r.who)
	m.clearDeadline(r)
}

// addOrphan makes a detached waiter known by its fingerprint.
func (m *Machine) addOrphan(r *request) {
	if r.fingerprint == (Fingerprint{}) {
		return
	}
	l := m.orphans[r.fingerprint]
	if l == nil {
		l = &line{which: hookFingerprint}
		m.orphans[r.fingerprint] = l
	}
	l.insert(r, uint64(r.enqueue))
}

func (m *Machine) dropOrphan(r *request) {
	if l := m.orphans[r.fingerprint]; l != nil {
		l.remove(r)
		if l.len() == 0 {
			delete(m.orphans, r.fingerprint)
		}
	}
}

// end takes a waiter out of the queue for good and tells its session.
func (m *Machine) end(r *request, why Refusal) {
	m.unwait(r)
	if r.unfinished() {
		m.fail(r.response, why)
		m.drop(r)
		return
	}
	m.emit(Effect{Kind: EffectEnded, Session: r.addressee(), Edge: r.lastEdge, Request: r.id, Refusal: why})
	m.drop(r)
}

// stir notes that a provider may have capacity that it had not before.
func (m *Machine) stir(p *provider) {
	if !p.dirty && len(p.lanes) > 0 {
		p.dirty = true
		m.dirty = append(m.dirty, p)
	}
}

// doubt notes that a provider may have ceased to be live for waiters.
func (m *Machine) doubt(p *provider) {
	if !p.dim && len(p.lanes) > 0 {
		p.dim = true
		m.dim = append(m.dim, p)
	}
}

// settle ends the waiters that nothing can be hoped for, then grants, repeatedly, the first that can be dispatched.
func (m *Machine) settle() {
	if len(m.dim) > 0 {
		m.endHopeless()
	}
	m.rankDirty()
	for {
		r := m.earliest()
		if r == nil {
			break
		}
		mo := m.models[r.model]
		chosen := mo.choose(r.lane.candidates, r.session, r.class)
		m.unwait(r)
		m.give(r, mo, chosen)
		m.emit(Effect{Kind: EffectGranted, Session: r.addressee(), Edge: r.lastEdge, Request: r.id, Grant: r.grant()})
	}
}

// earliest returns the first waiter that the provider could take now.
func (p *provider) earliest() *request {
	if !p.open() || !p.free(ClassNormal) {
		return nil
	}
	long := p.free(ClassLong)
	var best *request
	for _, at := range p.lanes {
		l := at.lane
		if l.session == nil || l.class == ClassLong && !long || l.who.full() || p.node.ready(l.session) == nil {
			continue
		}
		if r := l.waiters.first(); best == nil || r.rank().before(best.rank()) {
			best = r
		}
	}
	return best
}

// endHopeless ends the waiters that have no live or recovering candidate left, the earliest first.
func (m *Machine) endHopeless() {
	var victims []*request
	why := map[*lane]Refusal{}
	for i, p := range m.dim {
		p.dim = false
		m.dim[i] = nil
		for _, at := range p.lanes {
			l := at.lane
			if _, seen := why[l]; seen || l.session == nil || l.session == m.cluster {
				continue
			}
			why[l] = hope(l.candidates, l.session)
			if why[l] != RefusalNone {
				victims = append(victims, l.waiters.all()...)
			}
		}
	}
	m.dim = m.dim[:0]
	slices.SortFunc(victims, byEnqueue)
	for _, r := range victims {
		m.end(r, why[r.lane])
	}
}

func byEnqueue(a, b *request) int {
	if a.enqueue < b.enqueue {
		return -1
	}
	return 1
}
