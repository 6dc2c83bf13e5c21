package fsm

// The dirty providers are a heap, ordered by the first waiter that each could take. A grant makes providers only fuller lanes
// only shorter, and a principal's next turn only later, so that first waiter can only become a later one: a stale order is a lower bound, and looking again at
// the provider in front is enough. So a grant costs no more for many dirty providers than for few.

// rankDirty makes the dirty providers a heap. One that can take nobody is none.
func (m *Machine) rankDirty() {
	keep := m.dirty[:0]
	for _, p := range m.dirty {
		if r := p.earliest(); r != nil {
			p.first = r.rank()
			keep = append(keep, p)
		} else {
			p.dirty = false
		}
	}
	clear(m.dirty[len(keep):])
	m.dirty = keep
	for i := len(m.dirty)/2 - 1; i >= 0; i-- {
		m.sinkDirty(i)
	}
}

// earliest returns the first waiter that some dirty provider could take, nil if there is none.
func (m *Machine) earliest() *request {
	for len(m.dirty) > 0 {
		p := m.dirty[0]
		r := p.earliest()
		switch {
		case r == nil:
			m.dropDirty()
		case r.rank() == p.first:
			return r
		default:
			p.first = r.rank()
			m.sinkDirty(0)
		}
	}
	return nil
}

// dropDirty takes the first dirty provider out.
func (m *Machine) dropDirty() {
	last := len(m.dirty) - 1
	m.dirty[0].dirty = false
	m.dirty[0] = m.dirty[last]
	m.dirty[last] = nil
	m.dirty = m.dirty[:last]
	m.sinkDirty(0)
}

func (m *Machine) sinkDirty(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.dirty); child++ {
			if m.dirty[child].first.before(m.dirty[least].first) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.dirty[i], m.dirty[least] = m.dirty[least], m.dirty[i]
		i = least
	}
}
