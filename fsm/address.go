package fsm

// Announce tells where nodes reach the session's edge, for the other edges to tell theirs; "" takes that back. It outlives
// the session, for nodes go on looking for an edge that is down. Outcome: Done, or Refused.
type Announce struct{ Address string }

func (*Announce) command() {}

// AddressMax is how many bytes an address may have.
const AddressMax = 300

func (m *Machine) announce(s *session, c *Announce) Outcome {
	switch {
	case len(c.Address) > AddressMax:
		return refused(RefusalMalformed)
	case c.Address == "":
		delete(m.addresses, s.edge)
	default:
		m.addresses[s.edge] = c.Address
	}
	return Outcome{Code: Done}
}
