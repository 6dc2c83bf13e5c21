package fsm

import "slices"

// PrincipalConfig is what one principal may do. A principal without one has no limits.
type PrincipalConfig struct {
	ID          PrincipalID
	Models      []ModelID // that it may use; empty = all
	MaxInFlight int       // leases at a time; 0 = no limit
	MaxQueued   int       // waiters at a time; QueuedUnlimited = no limit, 0 = none may wait
}

// QueuedUnlimited as MaxQueued: as many may wait as the queue takes.
const QueuedUnlimited = -1

// principal is someone whose requests are in being. It exists as long as one of them.
type principal struct {
	id       PrincipalID
	limit    *PrincipalConfig // nil: none
	requests int              // that name it
	inFlight int
	queued   int     // detached ones too
	turn     uint64  // its place in the round, 0 = it has none: nobody waits, or the queue is in pure order
	lanes    []*lane // its own lanes with waiters
}

// enter names the principal of a request that is about to be.
func (m *Machine) enter(r *request, id PrincipalID) {
	w := m.principals[id]
	if w == nil {
		w = &principal{id: id, limit: m.limits[id]}
		m.principals[id] = w
	}
	w.requests++
	r.who = w
}

// exit is the end of a request. The nameless principal stays, since without principals every request is its.
func (m *Machine) exit(r *request) {
	w := r.who
	if w == nil {
		return
	}
	if w.requests--; w.requests == 0 && w.id != "" {
		delete(m.principals, w.id)
	}
}

// may tells whether the principal may use the model.
func (w *principal) may(id ModelID) bool {
	return w.limit == nil || len(w.limit.Models) == 0 || slices.Contains(w.limit.Models, id)
}

// limited tells whether its leases are bounded.
func (w *principal) limited() bool { return w.limit != nil && w.limit.MaxInFlight > 0 }

// full tells whether it holds as many leases as it may. It is false for no principal.
func (w *principal) full() bool {
	return w != nil && w.limited() && w.inFlight >= w.limit.MaxInFlight
}

// crowded tells whether as many of its requests wait as may.
func (w *principal) crowded() bool {
	return w.limit != nil && w.limit.MaxQueued != QueuedUnlimited && w.queued >= w.limit.MaxQueued
}

// apart tells whether its waiters stand in lanes of its own.
func (m *Machine) apart(w *principal) bool { return m.config.Pool.Fair || w.limited() }

// standsApart tells whether a waiter's lane is its principal's own just if it must be.
func (m *Machine) standsApart(r *request, l *lane) bool {
	if m.apart(r.who) {
		return l.who == r.who && l.key.own && l.key.who == r.who.id
	}
	return l.who == nil && !l.key.own
}

// defers tells whether a request that comes back must let the queue decide: its principal's limit may hold back others
// that come before it.
func (w *principal) defers() bool { return w.full() || w.limited() && w.queued > 0 }

// took counts a lease of the principal. Whoever else of it waits has its next turn after all the others.
func (m *Machine) took(w *principal) {
	w.inFlight++
	if m.config.Pool.Fair && w.queued > 0 {
		m.lastTurn++
		w.turn = m.lastTurn
	}
}

// gave counts a lease of the principal back. If its limit held its waiters back, they are looked at.
func (m *Machine) gave(w *principal) {
	held := w.full()
	w.inFlight--
	if !held || w.full() {
		return
	}
	for _, l := range w.lanes {
		for _, c := range l.candidates {
			m.stir(c.provider)
		}
	}
}

// queues counts a waiter of the principal. The first one brings it to the end of the round.
func (m *Machine) queues(w *principal) {
	w.queued++
	if m.config.Pool.Fair && w.turn == 0 {
		m.lastTurn++
		w.turn = m.lastTurn
	}
}

func (m *Machine) unqueues(w *principal) {
	if w.queued--; w.queued == 0 {
		w.turn = 0
	}
}

// addLane and dropLane keep the list of a principal's own lanes.
func (w *principal) addLane(l *lane) {
	l.place = len(w.lanes)
	w.lanes = append(w.lanes, l)
}

func (w *principal) dropLane(l *lane) {
	last := len(w.lanes) - 1
	w.lanes[l.place] = w.lanes[last]
	w.lanes[l.place].place = l.place
	w.lanes[last] = nil
	w.lanes = w.lanes[:last]
}

// configurePrincipals makes limits effective; no lease is cut and no waiter sent away by them.
func (m *Machine) configurePrincipals(configs []PrincipalConfig) {
	m.limits = make(map[PrincipalID]*PrincipalConfig, len(configs))
	for i := range configs {
		m.limits[configs[i].ID] = &configs[i]
	}
	for _, id := range sortedKeys(m.principals) {
		w := m.principals[id]
		w.limit = m.limits[id]
		if !m.config.Pool.Fair {
			w.turn = 0
		}
	}
	if !m.config.Pool.Fair {
		m.lastTurn = 0
	}
}

// beginRound gives those who wait their turns, in their order, when the queue has become a fair one.
func (m *Machine) beginRound(waiters []*request) {
	if !m.config.Pool.Fair {
		return
	}
	for _, r := range waiters {
		if r.who.turn == 0 {
			m.lastTurn++
			r.who.turn = m.lastTurn
		}
	}
}

// rank is a waiter's place among all that could take a slot: the lowest has it.
type rank struct {
	turn    uint64 // of its principal; 0 in pure order
	enqueue Enqueue
}

func (r *request) rank() rank { return rank{r.who.turn, r.enqueue} }

func (a rank) before(b rank) bool {
	if a.turn != b.turn {
		return a.turn < b.turn
	}
	return a.enqueue < b.enqueue
}

// checkPrincipals: the counts of principals are those of their requests, and who waits has a turn in a fair queue.
func (m *Machine) checkPrincipals(c *checker) {
	held, waiting := map[PrincipalID]int{}, map[PrincipalID]int{}
	for _, id := range sortedKeys(m.requests) {
		r := m.requests[id]
		if r.who == nil {
			c.that(false, "request %s has no principal", id)
			continue
		}
		c.that(m.principals[r.who.id] == r.who, "request %s names a forgotten principal %s", id, r.who.id)
		if r.waits() {
			waiting[r.who.id]++
		} else {
			held[r.who.id]++
		}
	}
	turns := map[uint64]PrincipalID{}
	for _, id := range sortedKeys(m.principals) {
		w := m.principals[id]
		c.that(w.inFlight == held[id], "I11: principal %s counts %d in flight, %d leases are its", id, w.inFlight, held[id])
		c.that(w.queued == waiting[id], "I11: principal %s counts %d waiters, has %d", id, w.queued, waiting[id])
		c.that(w.requests == held[id]+waiting[id], "principal %s counts %d requests, has %d", id, w.requests, held[id]+waiting[id])
		c.that(w.requests > 0 || id == "", "principal %s is idle, but kept", id)
		c.that((w.turn > 0) == (m.config.Pool.Fair && w.queued > 0), "principal %s has turn %d with %d waiters", id, w.turn, w.queued)
		c.that(w.turn <= m.lastTurn, "principal %s has turn %d, which was never given", id, w.turn)
		c.that(w.turn == 0 || turns[w.turn] == "", "principals %s and %s have the same turn", id, turns[w.turn])
		turns[w.turn] = id
		for i, l := range w.lanes {
			c.that(l.who == w && l.place == i && l.waiters.len() > 0, "principal %s lists a lane that is not its", id)
		}
	}
}

// Principals returns the principals of which a request is in being, by id.
func (m *Machine) Principals() []PrincipalView {
	out := []PrincipalView{}
	for _, id := range sortedKeys(m.principals) {
		if w := m.principals[id]; w.requests > 0 {
			out = append(out, w.view())
		}
	}
	return out
}

func (w *principal) view() PrincipalView {
	v := PrincipalView{ID: w.id, InFlight: w.inFlight, Queued: w.queued, MaxQueued: QueuedUnlimited}
	if w.limit != nil {
		v.MaxInFlight, v.MaxQueued = w.limit.MaxInFlight, w.limit.MaxQueued
	}
	return v
}

// PrincipalView is a principal as operators see it.
type PrincipalView struct {
	ID          PrincipalID
	InFlight    int
	Queued      int
	MaxInFlight int // 0 = no limit
	MaxQueued   int // QueuedUnlimited = no limit
}

// principalRows are the turns of the round.
func (m *Machine) principalRows() []PrincipalRow {
	var rows []PrincipalRow
	for _, id := range sortedKeys(m.principals) {
		if w := m.principals[id]; w.turn > 0 {
			rows = append(rows, PrincipalRow{ID: id, Turn: w.turn})
		}
	}
	return rows
}

// restorePrincipals puts back the turns, once the waiters are back.
func (m *Machine) restorePrincipals(img *Image) {
	for _, row := range img.Principals {
		if w := m.principals[row.ID]; w != nil {
			w.turn = row.Turn
		}
	}
	m.lastTurn = img.LastTurn
}
