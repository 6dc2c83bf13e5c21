package fsm

// TokenHash is the SHA-256 of a token that somebody else keeps; the machine never sees a token. The zero value is none.
type TokenHash [32]byte

const (
	// JoinsMax is how many join tokens there can be, the traces of used and overdue ones included.
	JoinsMax = 1024
	// JoinTTLMax is the longest life of a join token.
	JoinTTLMax = 7 * 24 * 3600 * Second
	// JoinTrace is how long a token is remembered after it was used or ran out: a caller that lost the answer asks again
	// and hears the same, one that came too late hears why.
	JoinTrace = 600 * Second
)

type (
	// AddJoin makes a token with which one machine can become the node, once, within TTL. The same again changes nothing.
	// Outcome: Done, or Refused: unknown_node, malformed (no token, or TTL is not in 1 ns … JoinTTLMax), duplicate (the
	// token is another node's or used), too_many.
	AddJoin struct {
		Token TokenHash
		Node  NodeID
		TTL   Time
	}

	// RedeemJoin uses a join token: from now on NodeToken is what the node registers with, instead of what it had or what
	// the configuration says. Repeated with the same NodeToken it is answered in the same way until the trace is gone.
	// Outcome: Joined (Grant.Node names the node), or Refused: unknown_token, expired, malformed (no NodeToken).
	RedeemJoin struct {
		Token     TokenHash
		NodeToken TokenHash
	}
)

func (*AddJoin) command()    {}
func (*RedeemJoin) command() {}

// JoinRow is a join token. Rows are in the order in which they were made.
type JoinRow struct {
	Token TokenHash
	Node  NodeID
	Until Time // it can be used before
	// Forget is when the row goes.
	Forget Time
	// NodeToken is what it was used for; zero = it was not.
	NodeToken TokenHash
}

// addJoin keeps a new token.
func (m *Machine) addJoin(c *AddJoin) Outcome {
	if c.Token == (TokenHash{}) || c.TTL <= 0 || c.TTL > JoinTTLMax {
		return refused(RefusalMalformed)
	}
	if n := m.nodes[c.Node]; n == nil || n.removed {
		return refused(RefusalUnknownNode)
	}
	if j := m.joinOf(c.Token); j != nil {
		if j.Node != c.Node || j.NodeToken != (TokenHash{}) {
			return refused(RefusalDuplicate)
		}
		return Outcome{Code: Done}
	}
	if len(m.joins) >= JoinsMax {
		return refused(RefusalTooMany)
	}
	until := m.now + c.TTL
	m.joins = append(m.joins, JoinRow{Token: c.Token, Node: c.Node, Until: until, Forget: until + JoinTrace})
	m.spansMoved = true
	return Outcome{Code: Done}
}

// redeemJoin uses a token.
func (m *Machine) redeemJoin(c *RedeemJoin) Outcome {
	if c.NodeToken == (TokenHash{}) {
		return refused(RefusalMalformed)
	}
	j := m.joinOf(c.Token)
	if j == nil {
		return refused(RefusalUnknownToken)
	}
	n := m.nodes[j.Node]
	joined := Outcome{Code: Joined, Grant: Grant{Node: n.id}}
	switch {
	case j.NodeToken != (TokenHash{}):
		if j.NodeToken != c.NodeToken || n.token != c.NodeToken {
			return refused(RefusalUnknownToken) // somebody else used it, or a later one took its place
		}
		return joined
	case j.Until <= m.now:
		return refused(RefusalExpired)
	}
	j.NodeToken, j.Forget = c.NodeToken, m.now+JoinTrace
	n.token = c.NodeToken
	m.spansMoved = true
	return joined
}

// joinOf returns the row of a token, nil if there is none.
func (m *Machine) joinOf(t TokenHash) *JoinRow {
	for i := range m.joins {
		if m.joins[i].Token == t {
			return &m.joins[i]
		}
	}
	return nil
}

// forgetJoins drops the rows that are overdue, at most so many, and tells how many.
func (m *Machine) forgetJoins(most int) int {
	count := 0
	m.dropJoins(func(j *JoinRow) bool {
		if j.Forget > m.now || count >= most {
			return false
		}
		count++
		return true
	})
	return count
}

// disown takes from a removed node what let it in: whoever gets its name later starts anew.
func (m *Machine) disown(n *node) {
	n.token = TokenHash{}
	m.dropJoins(func(j *JoinRow) bool { return j.Node == n.id })
}

func (m *Machine) dropJoins(gone func(*JoinRow) bool) {
	kept := m.joins[:0]
	for i := range m.joins {
		if !gone(&m.joins[i]) {
			kept = append(kept, m.joins[i])
		}
	}
	m.spansMoved = m.spansMoved || len(kept) < len(m.joins)
	clear(m.joins[len(kept):])
	m.joins = kept
}

// checkJoins: every token names a node that is there, and a used one is remembered.
func (m *Machine) checkJoins(c *checker) {
	c.that(len(m.joins) <= JoinsMax, "%d join tokens, at most %d are kept", len(m.joins), JoinsMax)
	seen := map[TokenHash]bool{}
	for i := range m.joins {
		j := &m.joins[i]
		n := m.nodes[j.Node]
		c.that(n != nil && !n.removed, "join token %d is for node %s, which is not there", i, j.Node)
		c.that(!seen[j.Token], "join token %d is kept twice", i)
		seen[j.Token] = true
	}
	for _, id := range sortedKeys(m.nodes) {
		n := m.nodes[id]
		c.that(!n.removed || n.token == TokenHash{}, "node %s is removed, but keeps its token", id)
	}
}

// NodeToken returns the hash of the token that a node got by joining, false if what the configuration says is in force.
func (m *Machine) NodeToken(id NodeID) (TokenHash, bool) {
	n := m.nodes[id]
	if n == nil || n.removed || n.token == (TokenHash{}) {
		return TokenHash{}, false
	}
	return n.token, true
}

// HasJoin tells whether a join token is kept, or the trace of one.
func (m *Machine) HasJoin(t TokenHash) bool { return m.joinOf(t) != nil }

// Joins returns the join tokens and the traces of used and overdue ones, the oldest first.
func (m *Machine) Joins() []JoinRow { return append([]JoinRow{}, m.joins...) }
