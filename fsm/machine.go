package fsm

import (
	"cmp"
	"maps"
	"slices"
)

// Machine is the state, and the only thing that may change it. It is not safe for concurrent use.
type Machine struct {
	index uint64
	term  uint64
	now   Time
	wall  int64

	revision Revision
	document []byte
	config   Config
	offers   map[EdgeID]string
	// addresses are where nodes reach the edges, as each announced last.
	addresses map[EdgeID]string
	level     uint32 // 0 = never raised
	checked   uint64 // index of the last digest check

	lastSession SessionID
	nextLease   LeaseID
	nextEnqueue Enqueue
	granted     uint64
	returned    uint64

	sessions  map[SessionID]*session
	edges     map[EdgeID]*session // the current session of an edge
	nodes     map[NodeID]*node
	providers map[ProviderID]*provider
	models    map[ModelID]*model
	requests  map[RequestID]*request
	leases    map[LeaseID]*request
	joins     []JoinRow

	principals map[PrincipalID]*principal // of which a request is in being
	limits     map[PrincipalID]*PrincipalConfig
	lastTurn   uint64 // the last one given in the round; 0 while the queue is in pure order
	ledger     ledger
	vault      vault    // the stored responses
	cluster    *session // whose the requests of background responses are while they wait
	metered    uint64   // runs counted in the ledger since the beginning

	// The queue: every waiter is in one lane; those with a deadline are in deadlines; detached ones are in orphans.
	lanes       map[laneKey]*lane
	deadlines   line
	orphans     map[Fingerprint]*line
	pending     int
	longPending int
	detached    int
	background  int // of pending, those of background responses

	spanNext   Time // the first end of a fence or a startup grace, 0 = none; valid unless spansMoved
	spansMoved bool

	// Work of the command at hand; empty between commands.
	dirty   []*provider
	dim     []*provider
	effects []Effect
	checks  []DigestCheck
	writes  []Write
	scratch []*candidate

	spare []*request // empty ones

	seen func(command int, o *Outcome, effectsFrom int) // of ApplyWatched, nil otherwise
}

// New returns a machine that has seen nothing: no configuration, so it refuses every model and node.
func New() *Machine {
	return &Machine{
		offers:      map[EdgeID]string{},
		addresses:   map[EdgeID]string{},
		nextLease:   1,
		nextEnqueue: 1,
		sessions:    map[SessionID]*session{},
		edges:       map[EdgeID]*session{},
		nodes:       map[NodeID]*node{},
		providers:   map[ProviderID]*provider{},
		models:      map[ModelID]*model{},
		requests:    map[RequestID]*request{},
		leases:      map[LeaseID]*request{},
		lanes:       map[laneKey]*lane{},
		deadlines:   line{which: hookDeadline},
		orphans:     map[Fingerprint]*line{},
		principals:  map[PrincipalID]*principal{},
		ledger:      ledger{rows: map[UsageKey]*UsageRow{}},
		vault:       vault{by: map[ResponseID]*response{}},
		cluster:     &session{id: anySession},
	}
}

// Apply takes the next entry of the log. It cannot fail: refusals are outcomes. It panics if the entry is not behind
// the last one, which means that the log is not what this machine was fed with before.
func (m *Machine) Apply(e *Entry) Result {
	m.begin(e)
	res := Result{Outcomes: make([][]Outcome, len(e.Batches))}
	for i := range e.Batches {
		res.Outcomes[i] = m.batch(&e.Batches[i])
	}
	res.Effects, res.Checks, res.Writes = m.effects, m.checks, m.writes
	return res
}

// begin makes the entry the current one.
func (m *Machine) begin(e *Entry) {
	if e.Index <= m.index {
		panic("fsm: entry applied out of order")
	}
	m.index, m.term, m.wall = e.Index, e.Term, e.Wall
	m.now = max(m.now, e.Elapsed)
	m.effects, m.checks, m.writes = m.effects[:0], m.checks[:0], m.writes[:0]
}

// commands applies commands in order; the machine is settled after each.
func (m *Machine) commands(s *session, cmds []Command) []Outcome {
	out := make([]Outcome, len(cmds))
	for i, c := range cmds {
		from := len(m.effects)
		out[i] = m.command(s, c)
		m.settle()
		if m.seen != nil {
			m.seen(i, &out[i], from)
		}
	}
	return out
}

func (m *Machine) command(s *session, c Command) Outcome {
	switch c := c.(type) {
	case *OpenSession:
		return m.openSession(c)
	case *EndSession:
		return m.endSession(c)
	case *Drain:
		return m.drain(c)
	case *Evict:
		return m.evict(c)
	case *ApplyConfig:
		return m.applyConfig(c)
	case *AddJoin:
		return m.addJoin(c)
	case *RedeemJoin:
		return m.redeemJoin(c)
	case *Expire:
		return m.expire(c)
	case *RaiseLevel:
		return m.raiseLevel(c)
	case *DigestCheck:
		return m.digestCheck(c)
	}
	if s == nil || m.sessions[s.id] != s {
		return Outcome{Code: SessionEnded}
	}
	return m.sessionCommand(s, c)
}

// sessionCommand applies what only a session can ask for.
func (m *Machine) sessionCommand(s *session, c Command) Outcome {
	switch c := c.(type) {
	case *Admit:
		return m.admit(s, c)
	case *Announce:
		return m.announce(s, c)
	case *Cancel:
		return m.cancel(s, c)
	case *Release:
		return m.release(s, c)
	case *RegisterNode:
		return m.register(s, c)
	case *NodeReady:
		return m.nodeReady(s, c)
	case *LinkLost:
		return m.linkLost(s, c)
	case *LinkReport:
		return m.linkReport(c)
	case *SetHealth:
		return m.setHealth(c)
	}
	return m.responseCommand(c)
}

// responseCommand applies what is said about stored responses.
func (m *Machine) responseCommand(c Command) Outcome {
	switch c := c.(type) {
	case *Submit:
		return m.submit(c)
	case *Progress:
		return m.progress(c)
	case *Keep:
		return m.keep(c)
	case *Forget:
		return m.forgetOne(c)
	}
	panic("fsm: unknown command")
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

func refused(why Refusal) Outcome { return Outcome{Code: Refused, Refusal: why} }

// pool returns the bounds of the queue; a machine without configuration has the default length.
func (m *Machine) pool() Pool {
	p := m.config.Pool
	if p.MaxQueue <= 0 {
		p.MaxQueue = maxQueueDefault
	}
	return p
}

// maxQueueDefault is provider_pool.max_queue where it is absent or 0.
const maxQueueDefault = 16

// sortedKeys is the one way to walk a map, so that no decision depends on its order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// waiters returns all waiters by enqueue number.
func (m *Machine) waiters() []*request {
	out := make([]*request, 0, m.pending)
	for _, key := range m.laneKeys() {
		out = append(out, m.lanes[key].waiters.all()...)
	}
	slices.SortFunc(out, byEnqueue)
	return out
}

// laneKeys returns the keys of all lanes in a fixed order.
func (m *Machine) laneKeys() []laneKey {
	return slices.SortedFunc(maps.Keys(m.lanes), func(a, b laneKey) int {
		return cmp.Or(
			cmp.Compare(a.session, b.session), cmp.Compare(a.model, b.model),
			cmp.Compare(a.class, b.class), cmp.Compare(a.who, b.who), compareBool(a.own, b.own),
			cmp.Compare(a.dropped, b.dropped),
		)
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Now returns cluster time as of the last entry.
func (m *Machine) Now() Time { return m.now }

// Wall returns the wall clock that the last entry carried, in Unix nanoseconds, for people.
func (m *Machine) Wall() int64 { return m.wall }

// Index returns the index of the last entry, 0 if there was none.
func (m *Machine) Index() uint64 { return m.index }

// Term returns the term of the last entry.
func (m *Machine) Term() uint64 { return m.term }

// Revision returns the revision of the configuration, 0 if none was applied.
func (m *Machine) Revision() Revision { return m.revision }

// Document returns the configuration's canonical bytes. They must not be modified.
func (m *Machine) Document() []byte { return m.document }

// Config returns what admission knows of the configuration. It must not be modified.
func (m *Machine) Config() Config { return m.config }

// Offer returns the hash of the configuration file that the edge offered last, "" if it never did.
func (m *Machine) Offer(e EdgeID) string { return m.offers[e] }

// Address returns where nodes reach the edge, as it announced last; "" if it never did.
func (m *Machine) Address(e EdgeID) string { return m.addresses[e] }

// Pending returns how many requests wait, detached ones too.
func (m *Machine) Pending() int { return m.pending }

// CurrentSession returns the edge's session, false if it has none.
func (m *Machine) CurrentSession(e EdgeID) (SessionID, bool) {
	if s := m.edges[e]; s != nil {
		return s.id, true
	}
	return 0, false
}
