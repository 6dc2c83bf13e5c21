package fsm

// The feature levels. A level is a set of command kinds and fields; each holds the ones below it. The state has the level
// that every replica is known to understand. The machine takes whatever it knows, at any level: it is the proposer that
// must not propose what is above it (LevelOf), or a replica of an older version would stop.
const (
	// LevelFirst is that of a state to which no level was ever raised.
	LevelFirst = 1
	// LevelMax is the highest that this version knows.
	LevelMax = 6
)

type (
	// RaiseLevel lets the replicas use what is new at a level. The level never falls. The leader proposes it when it has
	// seen every member with a version that knows it. Outcome: Done, or Stale if the level is not higher than before.
	RaiseLevel struct{ Level uint32 }

	// DigestCheck states the digest that the leader's machine had after the entry at Index. It changes nothing but the
	// index that Checked returns; whether a replica agrees is not the state's business but the replica's, which finds it
	// in Result.Checks and compares. Outcome: Done, or Stale if Index is not between the last check and this entry. One with
	// Index 0 is always Stale and changes nothing: it marks a place in the log, at which replicas can be compared.
	DigestCheck struct {
		Index  uint64
		Digest [32]byte
	}
)

func (*RaiseLevel) command()  {}
func (*DigestCheck) command() {}

// Level returns the feature level, at least LevelFirst.
func (m *Machine) Level() uint32 { return max(m.level, LevelFirst) }

// Checked returns the index of the last DigestCheck, 0 if there was none.
func (m *Machine) Checked() uint64 { return m.checked }

// LevelOf returns the feature level that a command needs to be proposed, at least LevelFirst. RaiseLevel needs none: who
// proposes it knows that all can read it.
func LevelOf(c Command) uint32 {
	switch c := c.(type) {
	case *Evict:
		return 5
	case *Submit, *Progress, *Keep, *Forget:
		return 4
	case *Announce, *DigestCheck, *AddJoin, *RedeemJoin:
		return 2
	case *EndSession:
		switch {
		case c.Since != 0:
			return 6
		case c.Apart:
			return 5
		case c.Alive:
			return 2
		}
	case *Admit:
		switch {
		case c.Place != 0:
			return 5
		case c.Principal != "", c.Token != "", c.Metered:
			return 3
		case c.Provider != "":
			return 2
		}
	case *Release:
		if c.Unsent {
			return 5
		}
		if c.Usage != (Usage{}) {
			return 3
		}
	case *ApplyConfig:
		if p := &c.Config.Pool; p.ResponsesBytes > 0 || p.ResponsesRetention > 0 {
			return 4
		}
		if len(c.Config.Principals) > 0 || c.Config.Pool.Fair {
			return 3
		}
	}
	return LevelFirst
}

func (m *Machine) raiseLevel(c *RaiseLevel) Outcome {
	if c.Level <= m.Level() {
		return Outcome{Code: Stale}
	}
	m.level = c.Level
	return Outcome{Code: Done}
}

func (m *Machine) digestCheck(c *DigestCheck) Outcome {
	if c.Index <= m.checked || c.Index >= m.index {
		return Outcome{Code: Stale}
	}
	m.checked = c.Index
	m.checks = append(m.checks, *c)
	return Outcome{Code: Done}
}
