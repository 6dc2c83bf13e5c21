package admission

import "iop/fsm"

// enter puts a waiter into the table, behind an earlier one with its id: that one has ended in the log, and the effect
// that says so comes first. It tells whether waiters are sent away.
func (a *Admission) enter(t *ticket) (turned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := t.admit.Request
	t.next, t.tabled = nil, true
	if last := a.waiting[id]; last == nil {
		a.waiting[id] = t
	} else {
		for last.next != nil {
			last = last.next
		}
		last.next = t
	}
	return a.turned
}

// take removes the earliest waiter with an id; nil = there is none.
func (a *Admission) take(id fsm.RequestID) *ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.waiting[id]
	if t != nil {
		a.remove(t)
	}
	return t
}

// leave removes a waiter, if it is there.
func (a *Admission) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.tabled {
		a.remove(t)
	}
}

func (a *Admission) remove(t *ticket) {
	id := t.admit.Request
	if first := a.waiting[id]; first == t {
		if t.next == nil {
			delete(a.waiting, id)
		} else {
			a.waiting[id] = t.next
		}
	} else {
		for first.next != t {
			first = first.next
		}
		first.next = t.next
	}
	t.next, t.tabled = nil, false
}

// all lists the waiters.
func (a *Admission) all() []*ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*ticket, 0, len(a.waiting))
	for _, t := range a.waiting {
		for ; t != nil; t = t.next {
			list = append(list, t)
		}
	}
	return list
}
