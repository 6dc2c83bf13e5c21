package fsm

// laneKey tells which waiters stand in one lane: those that could take just the same slots at the same time.
type laneKey struct {
	session SessionID // 0: detached waiters
	model   ModelID
	class   Class
	own     bool        // it is one principal's
	who     PrincipalID // whose, if own
	dropped string      // ids of the model's candidates that the filter took out, each followed by a NUL; mostly ""
}

// lane is a line of waiters that have the same session, class and candidates, so that only its first needs a look.
type lane struct {
	key        laneKey
	session    *session   // nil: detached
	who        *principal // whose lane it is; nil = anyone's
	class      Class
	candidates []*candidate
	place      int   // index of this lane in who.lanes, while it has waiters
	places     []int // index of this lane in each candidate's provider.lanes, while it has waiters
	waiters    line
}

// join puts a waiter into the lane for its session and the given candidates.
func (m *Machine) join(r *request, candidates []*candidate, dropped string) {
	key := laneKey{model: r.model, class: r.class, dropped: dropped}
	if r.session != nil {
		key.session = r.session.id
	}
	own := m.apart(r.who)
	if own {
		key.own, key.who = true, r.who.id
	}
	l := m.lanes[key]
	if l == nil {
		l = &lane{key: key, session: r.session, class: r.class, waiters: line{which: hookLane}}
		if own {
			l.who = r.who
		}
		l.candidates = append(l.candidates, candidates...)
		l.places = make([]int, len(candidates))
		m.lanes[key] = l
	}
	if l.waiters.len() == 0 {
		for i, c := range l.candidates {
			l.places[i] = len(c.provider.lanes)
			c.provider.lanes = append(c.provider.lanes, laneAt{l, i})
		}
		if own {
			l.who.addLane(l)
		}
	}
	r.lane = l
	l.waiters.insert(r, uint64(r.enqueue))
}

// leave takes a waiter out of its lane.
func (m *Machine) leave(r *request) {
	l := r.lane
	r.lane = nil
	l.waiters.remove(r)
	if l.waiters.len() > 0 {
		return
	}
	for i, c := range l.candidates {
		c.provider.dropLane(l.places[i])
	}
	if l.who != nil {
		l.who.dropLane(l)
	}
	// Lanes that a filter made are as many as its results, and those of principals as many as these: they go when they are empty. The plain ones stay for the
	// next waiter, until their session ends or the configuration changes.
	if l.key.dropped != "" || l.session == nil || l.who != nil {
		delete(m.lanes, l.key)
	}
}

// laneAt is an entry of provider.lanes: the lane, and which of its candidates the provider is.
type laneAt struct {
	lane *lane
	i    int
}

func (p *provider) dropLane(at int) {
	last := len(p.lanes) - 1
	moved := p.lanes[last]
	p.lanes[at] = moved
	moved.lane.places[moved.i] = at
	p.lanes[last] = laneAt{}
	p.lanes = p.lanes[:last]
}
