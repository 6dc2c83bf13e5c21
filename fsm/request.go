package fsm

import "slices"

// request is one admission in being: a waiter or the holder of a lease.
type request struct {
	id            RequestID
	fingerprint   Fingerprint
	model         ModelID
	class         Class
	inputTokens   int64
	needs         Needs
	maxWait       Time
	session       *session // nil: detached, or a fenced lease whose session ended
	lastEdge      EdgeID   // of the session that it has or had
	state         RequestState
	enqueue       Enqueue
	enqueuedAt    Time
	enqueuedWall  int64
	enqueuedIndex uint64
	detachedUntil Time
	excluded      []ProviderID
	direct        bool // addressed to one provider: it never waits
	who           *principal
	token         string    // token_ref
	metered       bool      // its run is counted in the ledger
	response      *response // that it is for, of a background one; nil = none, or it is forgotten

	// Of a waiter:
	lane  *lane
	hooks [hooks]hook

	// Of a lease:
	lease        LeaseID
	provider     *provider
	served       string
	link         *link
	heldPrev     *request // leases of the same link, by lease id
	heldNext     *request
	grantedAt    Time
	grantedWall  int64
	grantedIndex uint64
}

func (r *request) waits() bool { return r.state == StateWaiting || r.state == StateDetached }

func (r *request) excludes(p ProviderID) bool { return slices.Contains(r.excluded, p) }

// addressee is the session that hears of the request, 0 if none.
func (r *request) addressee() SessionID {
	if r.session == nil || r.session.id == anySession {
		return 0
	}
	return r.session.id
}

func (r *request) grant() Grant {
	return Grant{
		Lease: r.lease, Request: r.id, Model: r.model, Class: r.class, Provider: r.provider.ID,
		Node: r.link.node.id, Generation: r.link.generation, Served: r.served,
	}
}

// newRequest returns an empty request, a used one if there is one: with many waiters the garbage collector's work on
// fresh ones would be most of what an admission costs.
func (m *Machine) newRequest() *request {
	if last := len(m.spare) - 1; last >= 0 {
		r := m.spare[last]
		m.spare = m.spare[:last]
		return r
	}
	return &request{}
}

// drop forgets a request that neither waits nor holds a lease; it must not be used afterwards.
func (m *Machine) drop(r *request) {
	delete(m.requests, r.id)
	m.recycle(r)
}

func (m *Machine) recycle(r *request) {
	m.exit(r)
	*r = request{}
	if len(m.spare) < spareMax {
		m.spare = append(m.spare, r)
	}
}

// spareMax is how many used requests are kept for the next ones.
const spareMax = 1024

// deadline returns when the waiter's wait ends, 0 if never.
func (m *Machine) deadline(r *request) Time {
	if r.unfinished() {
		return 0 // it ends with its response
	}
	wait := m.pool().QueueTimeout
	if r.maxWait > 0 && (wait == 0 || r.maxWait < wait) {
		wait = r.maxWait
	}
	var at Time
	if wait > 0 {
		at = r.enqueuedAt + wait
	}
	if r.state == StateDetached && (at == 0 || r.detachedUntil < at) {
		at = r.detachedUntil
	}
	return at
}

// setDeadline puts a waiter into the line of deadlines, or moves it there.
func (m *Machine) setDeadline(r *request) {
	m.clearDeadline(r)
	if at := m.deadline(r); at > 0 {
		m.deadlines.insert(r, uint64(at))
	}
}

func (m *Machine) clearDeadline(r *request) {
	if r.hooks[hookDeadline].in {
		m.deadlines.remove(r)
	}
}
