package fsm_test

import (
	"cmp"
	"slices"

	. "iop/fsm"
)

// limit of a principal, nil if it has none.
func (n *naive) limit(id PrincipalID) *PrincipalConfig {
	for i := range n.config.Principals {
		if n.config.Principals[i].ID == id {
			return &n.config.Principals[i]
		}
	}
	return nil
}

// counts of a principal: its leases and its waiters.
func (n *naive) counts(id PrincipalID) (held, waiting int) {
	for _, r := range n.requests {
		switch {
		case r.Principal != id:
		case r.isWaiter():
			waiting++
		default:
			held++
		}
	}
	return held, waiting
}

// atLimit: the request's principal holds as many leases as it may.
func (n *naive) atLimit(r *nRequest) bool {
	l := n.limit(r.Principal)
	held, _ := n.counts(r.Principal)
	return l != nil && l.MaxInFlight > 0 && held >= l.MaxInFlight
}

// crowded: as many of the principal's requests wait as may.
func (n *naive) crowded(id PrincipalID) bool {
	l := n.limit(id)
	_, waiting := n.counts(id)
	return l != nil && l.MaxQueued != QueuedUnlimited && waiting >= l.MaxQueued
}

// forbidden: the principal may use certain models, and this is none of them.
func (n *naive) forbidden(id PrincipalID, m ModelID) bool {
	l := n.limit(id)
	return l != nil && len(l.Models) > 0 && !slices.Contains(l.Models, m)
}

// round has those whose first request has begun to wait at its end, and those with none left nowhere.
func (n *naive) round() {
	if !n.config.Pool.Fair {
		n.lastTurn = 0
		clear(n.turns)
		return
	}
	for id := range n.turns {
		if _, waiting := n.counts(id); waiting == 0 {
			delete(n.turns, id)
		}
	}
	for _, r := range n.waiters() {
		if n.turns[r.Principal] == 0 {
			n.lastTurn++
			n.turns[r.Principal] = n.lastTurn
		}
	}
}

// served: a principal that got a slot goes to the end of the round.
func (n *naive) served(r *nRequest) {
	n.round()
	if n.turns[r.Principal] > 0 {
		n.lastTurn++
		n.turns[r.Principal] = n.lastTurn
	}
}

// inTurn are the waiters as they are asked whether they can have a slot.
func (n *naive) inTurn() []*nRequest {
	ws := n.waiters()
	slices.SortStableFunc(ws, func(a, b *nRequest) int { return cmp.Compare(n.turns[a.Principal], n.turns[b.Principal]) })
	return ws
}

// used counts a run that has ended.
func (n *naive) used(r *nRequest, why Reason, u Usage) {
	if !r.Metered || why == ReasonNotRun || why == ReasonNeverSent {
		return
	}
	n.metered++
	key := UsageKey{Day: n.wall / (24 * 3600 * int64(Second)), Principal: r.Principal, Token: r.Token, Model: r.Model, Provider: r.Provider}
	if r.Direct {
		key.Model = ModelID("provider:" + string(r.Provider))
	}
	i := slices.IndexFunc(n.usage, func(x UsageRow) bool { return x.UsageKey == key })
	if i < 0 {
		i = len(n.usage)
		n.usage = append(n.usage, UsageRow{UsageKey: key})
	}
	x := &n.usage[i]
	x.Requests++
	if why != ReasonDone {
		x.Aborted++
	}
	if !u.Told {
		x.Untold++
		return
	}
	x.Prompt, x.Completion = x.Prompt+uint64(u.Prompt), x.Completion+uint64(u.Completion)
	x.Cached, x.Reasoning = x.Cached+uint64(u.Cached), x.Reasoning+uint64(u.Reasoning)
}
