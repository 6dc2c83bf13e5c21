package fsm_test

import (
	"slices"

	. "iop/fsm"
)

// admitDirect (1.4, beside the queue): now or not at all.
func (n *naive) admitDirect(s *nSession, c *Admit) Outcome {
	no := func(why Refusal) Outcome { return Outcome{Code: Refused, Refusal: why} }
	p := n.provider(c.Provider)
	switch {
	case n.request(c.Request) != nil:
		return no(RefusalInProgressElsewhere)
	case p == nil || p.removed || p.Capacity != 0:
		return no(RefusalModelNotFound)
	case n.forbidden(c.Principal, ModelID("provider:"+string(p.ID))):
		return no(RefusalModelNotFound)
	case p.Can&c.Needs != c.Needs:
		return no(RefusalUnsupported)
	case p.ContextWindow > 0 && p.ContextWindow < c.InputTokens || c.Class == ClassLong && p.LongCapacity == 0:
		return no(RefusalContextTooLong)
	}
	r := &nRequest{RequestRow{
		Edge: s.edge, ID: c.Request, Fingerprint: c.Fingerprint, Model: c.Model, Class: c.Class, InputTokens: c.InputTokens,
		Needs: c.Needs, MaxWait: c.MaxWait, Session: s.id, Enqueue: n.lastEnqueue + 1, Direct: true,
		EnqueuedAt: n.now, EnqueuedWall: n.wall, EnqueuedIndex: n.index,
		Principal: c.Principal, Token: c.Token, Metered: c.Metered,
	}}
	switch n.stand(p, r) {
	case drained:
		return no(RefusalDraining)
	case full:
		long := 0
		for _, x := range n.leases("", 0) {
			if x.Provider == p.ID && x.Class == ClassLong {
				long++
			}
		}
		if n.atLimit(r) && !(r.Class == ClassLong && p.LongCapacity > 0 && long >= p.LongCapacity) {
			return no(RefusalPrincipalLimit)
		}
		return no(RefusalUnavailable)
	case dead, recovering:
		return no(RefusalUnavailable)
	}
	n.lastEnqueue++
	n.lastLease++
	n.granted++
	p.granted++
	r.State, r.Lease, r.Provider, r.Node, r.Served = StateHeld, n.lastLease, p.ID, p.Node, c.Served
	r.Generation = n.node(p.Node).on(s.edge).generation
	r.GrantedAt, r.GrantedWall, r.GrantedIndex = n.now, n.wall, n.index
	n.requests = append(n.requests, r)
	n.served(r)
	return Outcome{Code: Granted, Grant: r.grant()}
}

// join tokens (1.12).

func (n *naive) join(t TokenHash) *JoinRow {
	i := slices.IndexFunc(n.joins, func(j *JoinRow) bool { return j.Token == t })
	if i < 0 {
		return nil
	}
	return n.joins[i]
}

func (n *naive) addJoin(c *AddJoin) Outcome {
	no := func(why Refusal) Outcome { return Outcome{Code: Refused, Refusal: why} }
	x, j := n.node(c.Node), n.join(c.Token)
	switch {
	case c.Token == TokenHash{} || c.TTL < 1 || c.TTL > JoinTTLMax:
		return no(RefusalMalformed)
	case x == nil || x.removed:
		return no(RefusalUnknownNode)
	case j != nil && (j.Node != c.Node || j.NodeToken != TokenHash{}):
		return no(RefusalDuplicate)
	case j == nil && len(n.joins) == JoinsMax:
		return no(RefusalTooMany)
	case j == nil:
		n.joins = append(n.joins, &JoinRow{Token: c.Token, Node: c.Node, Until: n.now + c.TTL, Forget: n.now + c.TTL + JoinTrace})
	}
	return Outcome{Code: Done}
}

func (n *naive) redeemJoin(c *RedeemJoin) Outcome {
	no := func(why Refusal) Outcome { return Outcome{Code: Refused, Refusal: why} }
	j := n.join(c.Token)
	switch {
	case c.NodeToken == TokenHash{}:
		return no(RefusalMalformed)
	case j == nil:
		return no(RefusalUnknownToken)
	case j.NodeToken == TokenHash{} && j.Until <= n.now:
		return no(RefusalExpired)
	case j.NodeToken == TokenHash{}:
		j.NodeToken, j.Forget, n.node(j.Node).token = c.NodeToken, n.now+JoinTrace, c.NodeToken
	case j.NodeToken != c.NodeToken || n.node(j.Node).token != c.NodeToken:
		return no(RefusalUnknownToken)
	}
	return Outcome{Code: Joined, Grant: Grant{Node: j.Node}}
}
