package fsm_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	. "iop/fsm"
)

// picker makes choices: seeded, or drawn by rapid so that a failure shrinks.
type picker interface{ pick(n int) int } // 0 ≤ result < n

type seeded struct{ r *rand.Rand }

func (s seeded) pick(n int) int { return s.r.IntN(n) }

func seededBy(seed uint64) picker { return seeded{rand.New(rand.NewPCG(seed, 0x10b))} }

// generator invents the next entry for a small world, mostly one that makes sense in the state of the model.
type generator struct {
	picker
	n     *naive
	next  map[SessionID]uint64 // next seq, within the entry that is being made
	sent  []Batch              // some of the last ones, to send again
	ended []SessionID
	count int    // commands made
	gap   uint64 // between the indexes of entries
}

func newGenerator(p picker, n *naive) *generator { return &generator{picker: p, n: n, gap: 1} }

func choose[T any](g *generator, of ...T) T { return of[g.pick(len(of))] }

func (g *generator) one(in int) bool { return g.pick(in) == 0 }

// entry makes the next entry: mostly one command, so that the invariants are checked after each.
func (g *generator) entry() *Entry {
	e := &Entry{Index: g.n.index + g.gap, Term: max(g.n.term, 1), Elapsed: max(g.n.now, Millisecond), Wall: int64(g.n.index) * int64(1800*Second)}
	if g.one(200) {
		e.Index, e.Term = e.Index+uint64(g.pick(5)), e.Term+1
	}
	switch g.pick(8) {
	case 0, 1, 2:
		e.Elapsed += Time(g.pick(40)) * Millisecond
	case 3:
		if at, some := g.n.nextDeadline(); some && g.one(3) {
			e.Elapsed = max(at, e.Elapsed)
		}
	case 4:
		e.Elapsed -= Time(g.pick(2)) * Millisecond // counts as the last
	}
	g.next = map[SessionID]uint64{}
	batches := 1
	if g.one(8) {
		batches += g.pick(3)
	}
	for range batches {
		e.Batches = append(e.Batches, g.batch(e))
	}
	return e
}

func (g *generator) batch(e *Entry) Batch {
	if len(g.sent) > 0 && g.one(25) {
		b := choose(g, g.sent...)
		b.Sum += uint64(g.pick(6) / 5) // at times with another content
		g.count += len(b.Commands)
		return b
	}
	var b Batch
	if s := g.session(); s != 0 && !g.one(12) {
		b = g.sessionBatch(s)
	} else {
		b.Commands = []Command{g.clusterCommand(e)}
	}
	g.count += len(b.Commands)
	return b
}

// session picks a proposer: a current one, seldom one that has ended.
func (g *generator) session() SessionID {
	if len(g.ended) > 0 && g.one(60) {
		return choose(g, g.ended...)
	}
	if len(g.n.sessions) == 0 {
		return 0
	}
	return choose(g, g.n.sessions...).id
}

func (g *generator) sessionBatch(id SessionID) Batch {
	b := Batch{Session: id, Seq: 1, AckBelow: 1}
	if s := g.n.session(id); s != nil {
		if g.next[id] == 0 {
			g.next[id] = s.nextSeq
		}
		b.Seq = g.next[id]
		b.AckBelow = b.Seq - uint64(g.pick(int(min(b.Seq, 4))))
		if g.one(10) {
			b.AckBelow = b.Seq + uint64(g.pick(3)) // more than it can have
		}
	}
	commands := 1
	if g.one(6) {
		commands += g.pick(4)
	}
	for range commands {
		b.Commands = append(b.Commands, g.sessionCommand(id))
	}
	b.Sum = sum(b.Commands)
	if g.one(80) {
		b.Seq += 1 + uint64(g.pick(2))
		return b
	}
	if g.sent = append(g.sent, b); len(g.sent) > 6 {
		g.sent = g.sent[1:]
	}
	g.next[id] = b.Seq + 1
	return b
}

func sum(cs []Command) uint64 {
	h := fnv.New64a()
	for _, c := range cs {
		h.Write(fmt.Appendf(nil, "%T%v", c, c))
	}
	return h.Sum64()
}

func (g *generator) clusterCommand(e *Entry) Command {
	switch k := g.pick(24); {
	case g.n.revision == 0 || k == 0:
		return &ApplyConfig{
			Document: binary.BigEndian.AppendUint64(nil, uint64(g.count)), Config: g.config(),
			Expected: g.n.revision - Revision(g.pick(8)/7), Force: g.one(8),
			Edge: g.edge(), Offer: choose(g, "", "a", "b"),
		}
	case len(g.n.sessions) == 0 || k <= 1:
		g.remember()
		return &OpenSession{Edge: g.edge(), Nonce: 1 + uint64(g.pick(6))}
	case k == 2:
		g.remember()
		s := choose(g, g.n.sessions...)
		return &EndSession{Edge: choose(g, s.edge, s.edge, "e1"), Session: s.id, Reason: ReasonGoodbye, Alive: g.one(2), Apart: g.one(2), Since: g.since()}
	case k <= 8:
		return g.drain()
	case k == 9 && g.one(4):
		return &RaiseLevel{Level: uint32(g.pick(6))}
	case k == 9:
		return &DigestCheck{Index: e.Index - min(e.Index, uint64(g.pick(4))), Digest: [32]byte{byte(g.count)}}
	case k == 10:
		return g.joinCommand()
	case k == 11:
		return &Evict{Request: g.requestID()}
	}
	return &Expire{Term: e.Term - uint64(g.pick(10)/9)}
}

func (g *generator) remember() {
	for _, s := range g.n.sessions {
		g.ended = append(g.ended, s.id)
	}
	g.ended = g.ended[max(0, len(g.ended)-3):]
}

func (g *generator) edge() EdgeID         { return choose[EdgeID](g, "e1", "e1", "e2") }
func (g *generator) nodeID() NodeID       { return choose[NodeID](g, "n1", "n2", "n3") }
func (g *generator) provID() ProviderID   { return choose[ProviderID](g, "p1", "p2", "p3", "p4") }
func (g *generator) modelID() ModelID     { return choose[ModelID](g, "m1", "m1", "m2", "m3") }
func (g *generator) span(n int) Time      { return Time(g.pick(n)) * 20 * Millisecond }
func (g *generator) requestID() RequestID { return RequestID(fmt.Sprint("r", g.pick(10))) }

// since is when the session of an edge fell silent: never, at the beginning, or at some time that mattered.
func (g *generator) since() Time {
	if len(g.n.requests) == 0 || g.one(3) {
		return Time(g.pick(2))
	}
	return choose(g, g.n.requests...).EnqueuedAt + Time(g.pick(2))
}

func (g *generator) drain() Command {
	d := &Drain{Provider: g.provID(), On: g.one(8)}
	if g.one(3) {
		d.Node, d.Provider = g.nodeID(), ""
	} else if g.one(3) {
		d.Node = g.nodeID()
	}
	return d
}

func (g *generator) config() Config {
	c := Config{Pool: Pool{
		MaxQueue: choose(g, 0, 1, 3, 6, 8), QueueTimeout: choose(g, 0, 100*Millisecond, 400*Millisecond),
		StartupGrace: g.span(6), ReattachWindow: g.span(10), FenceTimeout: g.span(8),
	}}
	for _, id := range []NodeID{"n1", "n2", "n3"} {
		if !g.one(8) {
			c.Nodes = append(c.Nodes, id)
		}
	}
	for i, id := range []ProviderID{"p1", "p2", "p3", "p4"} {
		if g.one(10) {
			continue
		}
		p := ProviderConfig{
			ID: id, Node: choose[NodeID](g, "n1", "n2", "n3"), Capacity: choose(g, 1, 1, 2, 3, 0),
			LongCapacity: choose(g, LongUncounted, LongUncounted, 0, 1, 2), ContextWindow: choose[int64](g, 0, 0, 100, 1000),
			Priority: g.pick(2), Enabled: !g.one(8), Can: choose(g, AllNeeds, AllNeeds, NeedChat),
		}
		if !g.one(5) {
			p.Node = []NodeID{"n1", "n1", "n2", "n3"}[i]
		}
		c.Providers = append(c.Providers, p)
	}
	for _, id := range []ModelID{"m1", "m2", "m3"} {
		if g.one(10) {
			continue
		}
		m := ModelConfig{ID: id}
		for _, p := range []ProviderID{"p4", "p1", "p3", "p2"} {
			if !g.one(3) {
				m.Candidates = append(m.Candidates, Candidate{Provider: p, Served: string(id) + "@" + string(p)})
			}
		}
		c.Models = append(c.Models, m)
	}
	c.Pool.Fair = g.one(3)
	for _, id := range []PrincipalID{"", "ann", "bob"} {
		if !g.one(4) {
			continue
		}
		l := PrincipalConfig{ID: id, MaxInFlight: choose(g, 0, 1, 1, 2), MaxQueued: choose(g, QueuedUnlimited, QueuedUnlimited, 0, 1, 3)}
		if g.one(6) {
			l.Models = []ModelID{"m1", "m2", "provider:p2"}
		}
		c.Principals = append(c.Principals, l)
	}
	return c
}

func (g *generator) sessionCommand(by SessionID) Command {
	switch k := g.pick(100); {
	case k < 45:
		return g.admit()
	case k < 70:
		return g.release()
	case k < 76:
		return &Cancel{Request: g.requestID()}
	case k < 95:
		return g.linkCommand(by)
	case k < 96 && g.one(3):
		return &Evict{Request: g.requestID()}
	case k < 96:
		return g.drain()
	case k < 97:
		return &Announce{Address: choose(g, "", "here:1", "there:2", string(make([]byte, AddressMax+1)))}
	case k < 99:
		return &Expire{Term: g.n.term}
	}
	return &Admit{Request: choose[RequestID](g, "", RequestID(make([]byte, RequestIDMax+1)))}
}

func (g *generator) admit() Command {
	a := &Admit{
		Request: g.requestID(), Model: g.modelID(), Class: choose(g, ClassNormal, ClassNormal, ClassLong),
		InputTokens: choose[int64](g, 0, 10, 500, 5000), Needs: choose(g, 0, 0, NeedChat, NeedChat, NeedChat, NeedEmbeddings),
		MaxWait: choose(g, 0, 0, 150*Millisecond),
	}
	if g.one(50) {
		a.Model = "none"
	}
	if a.InputTokens == 5000 && !g.one(4) {
		a.InputTokens = 0
	}
	if g.one(2) {
		a.Fingerprint[0] = byte(1 + g.pick(4))
	}
	if !g.one(3) {
		a.Principal, a.Token, a.Metered = choose[PrincipalID](g, "", "ann", "ann", "bob"), choose(g, "", "t1", "t2"), !g.one(4)
	}
	if g.one(60) {
		a.Token = string(make([]byte, NameMax+1))
	}
	if g.one(4) {
		a.Place = Enqueue(g.pick(int(g.n.lastEnqueue) + 2))
	}
	if w := g.n.waiters(); len(w) > 0 && g.one(4) { // an identical request
		r := choose(g, w...)
		a.Model, a.Class, a.Fingerprint, a.Principal = r.Model, r.Class, r.Fingerprint, r.Principal
	}
	if w := g.n.waiters(); len(w) > 1 && g.one(8) { // one that knows of a place of an identical one
		r := choose(g, w...)
		a.Request, a.Fingerprint = r.ID, r.Fingerprint
		for _, o := range w {
			if o != r && alike(o, r) {
				a.Place = o.Enqueue
			}
		}
	}
	if g.one(12) {
		a.Provider, a.Served = g.provID(), choose(g, "", "served")
	}
	return a
}

func (g *generator) release() Command {
	r := &Release{Lease: g.lease(), Reason: ReasonDone, Requeue: g.one(4), Unsent: g.one(3)}
	if g.one(4) {
		r.Reason = choose(g, ReasonCanceled, ReasonNotRun, ReasonBackendError, ReasonNeverSent)
	}
	if g.one(2) {
		r.Usage = Usage{Told: true, Prompt: int64(g.pick(9)), Completion: int64(g.pick(9)), Cached: int64(g.pick(3)), Reasoning: int64(g.pick(2))}
	}
	return r
}

// joinCommand makes or uses one of a few tokens.
func (g *generator) joinCommand() Command {
	token := choose(g, tokenHash("t1"), tokenHash("t2"), tokenHash("t3"), tokenHash("t4"), tokenHash("t5"))
	if g.one(40) {
		token = TokenHash{}
	}
	if g.one(2) {
		return &RedeemJoin{Token: token, NodeToken: choose(g, tokenHash("k1"), tokenHash("k1"), tokenHash("k2"), TokenHash{})}
	}
	c := &AddJoin{Token: token, Node: g.nodeID(), TTL: choose(g, 20*Millisecond, 100*Millisecond, Second)}
	if g.one(20) {
		c.TTL = choose(g, 0, JoinTTLMax+1)
	}
	if g.one(20) {
		c.Node = "n9"
	}
	return c
}

func (g *generator) lease() LeaseID {
	if ls := g.n.leases("", 0); len(ls) > 0 && !g.one(10) {
		return choose(g, ls...).Lease
	}
	return g.n.lastLease - LeaseID(g.pick(int(min(g.n.lastLease, 6))+1))
}

// linkCommand speaks of a link in being, at times of another.
func (g *generator) linkCommand(by SessionID) Command {
	if len(g.n.nodes) == 0 {
		return g.register(by)
	}
	if x, l := g.pendingLink(by); l != nil && !g.one(4) {
		return &NodeReady{Node: x.id, Generation: l.generation}
	}
	if g.one(3) {
		return g.register(by)
	}
	x := choose(g, g.n.nodes...)
	gen := x.generation - Generation(g.pick(3)/2)
	if len(x.links) > 0 && !g.one(10) {
		gen = choose(g, x.links...).generation
	}
	switch k := g.pick(20); {
	case k < 4:
		return &NodeReady{Node: x.id, Generation: gen}
	case k < 8:
		return &LinkLost{Node: x.id, Generation: gen, Reason: choose(g, ReasonHeartbeat, ReasonLinkLost, ReasonGoodbye)}
	case k < 12:
		return &LinkReport{Node: x.id, Generation: gen, Running: g.some(x.id)}
	}
	h := &SetHealth{Node: x.id, Generation: gen, Provider: g.provID(), Health: Health(g.pick(5) / 4)}
	if h.Health == Degraded {
		h.Cause = choose(g, "overheated", string(make([]byte, CauseMax+5)))
	}
	return h
}

func (g *generator) pendingLink(by SessionID) (*nNode, *nLink) {
	for _, x := range g.n.nodes {
		for _, l := range x.links {
			if l.session == by && l.state == LinkPending {
				return x, l
			}
		}
	}
	return nil, nil
}

func (g *generator) register(by SessionID) Command {
	c := &RegisterNode{Node: choose(g, g.nodeID(), g.nodeID(), g.nodeID(), g.nodeID(), "n9"), Instance: 1 + uint64(g.pick(12)/11), Running: g.some("")}
	if s, x := g.n.session(by), g.n.node(c.Node); s != nil && x != nil {
		if l := x.on(s.edge); l != nil && g.one(3) {
			c.Supersede = l.generation
		}
	}
	return c
}

// some of the leases that a node might say it still runs.
func (g *generator) some(node NodeID) []LeaseID {
	var ls []LeaseID
	for _, r := range g.n.leases(node, 0) {
		if g.one(2) {
			ls = append(ls, r.Lease)
		}
	}
	if g.one(10) {
		ls = append(ls, 999999)
	}
	return ls
}
