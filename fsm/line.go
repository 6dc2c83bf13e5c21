package fsm

// hook is a request's place in one line.
type hook struct {
	key        uint64 // what the line is ordered by
	prev, next *request
	slot       int // index+1 among the returners; 0 = in the chain or in no line
	in         bool
}

// The lines that a request can be in, each with its own hook.
const (
	hookLane        = iota // its lane, by enqueue number
	hookDeadline           // all waiters with a deadline, by deadline
	hookFingerprint        // detached waiters of one fingerprint, by enqueue number
	hooks
)

// line is an ordered set of requests: by key, then by enqueue number. Newcomers mostly carry the highest key, so they
// join a chain at its end in constant time, however long it is; the few that come back to an earlier place (requeued,
// re-attached) stand in a heap beside it. The first of both is the first of the line.
type line struct {
	which      int
	head, tail *request
	returners  []*request
	n          int
}

func before(which int, a, b *request) bool {
	ka, kb := a.hooks[which].key, b.hooks[which].key
	if ka != kb {
		return ka < kb
	}
	return a.enqueue < b.enqueue
}

func (l *line) len() int { return l.n }

// first returns the earliest request, nil if the line is empty.
func (l *line) first() *request {
	if len(l.returners) == 0 {
		return l.head
	}
	if r := l.returners[0]; l.head == nil || before(l.which, r, l.head) {
		return r
	}
	return l.head
}

func (l *line) insert(r *request, key uint64) {
	h := &r.hooks[l.which]
	if h.in {
		panic("fsm: request " + string(r.id) + " is in that line already")
	}
	*h = hook{key: key, in: true}
	l.n++
	if l.tail == nil || before(l.which, l.tail, r) {
		h.prev = l.tail
		if l.tail != nil {
			l.tail.hooks[l.which].next = r
		} else {
			l.head = r
		}
		l.tail = r
		return
	}
	l.returners = append(l.returners, r)
	h.slot = len(l.returners)
	l.up(len(l.returners) - 1)
}

func (l *line) remove(r *request) {
	h := &r.hooks[l.which]
	if !h.in {
		panic("fsm: request " + string(r.id) + " is not in that line")
	}
	l.n--
	if h.slot > 0 {
		l.removeReturner(h.slot - 1)
	} else {
		l.unchain(h)
	}
	*h = hook{}
}

func (l *line) unchain(h *hook) {
	if h.prev != nil {
		h.prev.hooks[l.which].next = h.next
	} else {
		l.head = h.next
	}
	if h.next != nil {
		h.next.hooks[l.which].prev = h.prev
	} else {
		l.tail = h.prev
	}
}

func (l *line) removeReturner(i int) {
	last := len(l.returners) - 1
	l.swap(i, last)
	l.returners[last] = nil
	l.returners = l.returners[:last]
	if i < last {
		l.down(i)
		l.up(i)
	}
}

func (l *line) swap(i, j int) {
	l.returners[i], l.returners[j] = l.returners[j], l.returners[i]
	l.returners[i].hooks[l.which].slot = i + 1
	l.returners[j].hooks[l.which].slot = j + 1
}

func (l *line) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !before(l.which, l.returners[i], l.returners[parent]) {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *line) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(l.returners); child++ {
			if before(l.which, l.returners[child], l.returners[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		l.swap(i, least)
		i = least
	}
}

// all returns the requests of the line in no particular order.
func (l *line) all() []*request {
	out := make([]*request, 0, l.n)
	for r := l.head; r != nil; r = r.hooks[l.which].next {
		out = append(out, r)
	}
	return append(out, l.returners...)
}
