package fsm

// EachSession calls fn for the current session of every edge that has one, in order of the edges' ids.
func (m *Machine) EachSession(fn func(EdgeID, SessionID)) {
	for _, e := range sortedKeys(m.edges) {
		fn(e, m.edges[e].id)
	}
}
