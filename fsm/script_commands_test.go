package fsm_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "iop/fsm"
)

// verbs are the words that begin a line of a story.
func verbs() map[string]func(*script, *args) {
	return map[string]func(*script, *args){
		// The configuration, until "config" applies it anew.
		"pool":      (*script).pool,      // max_queue=8 queue_timeout=1s grace=1s reattach=1s fence=1s
		"node":      (*script).node,      // n1
		"provider":  (*script).provider,  // p1 node=n1 capacity=1 long=2|none window=N priority=N can=chat,embeddings disabled models=m1,m2!served
		"model":     (*script).model,     // m1
		"principal": (*script).principal, // ann max=1 queued=0 models=m1,m2
		"remove":    (*script).remove,    // provider|model|node ID

		"alone":    func(s *script, _ *args) { s.alone = true }, // without the naive model: stories of stored responses
		"bare":     func(s *script, _ *args) { s.begun = true },
		"config":   (*script).applyConfig, // expected=N force edge=e1 offer=hash
		"open":     (*script).open,        // e1 nonce=N
		"end":      (*script).end,         // e1|s1 reason=R
		"advance":  (*script).advance,     // 1s: cluster time goes on
		"expire":   (*script).expire,      // term=N
		"drain":    (*script).drain,       // p1 | node n1
		"undrain":  (*script).drain,
		"raise":    (*script).raise,  // LEVEL
		"digest":   (*script).digest, // INDEX right|wrong: what the leader says its digest was
		"batch":    (*script).batch,  // seq=N ack=N sum=N by=s1, then indented commands
		"admit":    (*script).simple,
		"announce": (*script).simple, // ADDRESS
		"cancel":   (*script).simple,
		"evict":    (*script).evict,
		"release":  (*script).simple,
		"register": (*script).simple,
		"ready":    (*script).simple,
		"lost":     (*script).simple,
		"report":   (*script).simple,
		"health":   (*script).simple,
		"submit":   (*script).simple, // x1 model=m bytes=N events=N
		"progress": (*script).simple, // x1 on=#7 status=in_progress events=N bytes=N object=N
		"keep":     (*script).simple, // x1 status=completed bytes=N
		"forget":   (*script).simple, // x1
		"join":     (*script).join,   // t1 node=n1 ttl=1h
		"redeem":   (*script).redeem, // t1 as=k1
		"show":     (*script).show,   // joins | queue | leases | providers | nodes | sessions | deadline | level | addresses
	}
}

// args are the words of a line: plain ones and key=value.
type args struct {
	s      *script
	line   string
	verb   string
	words  []string
	values map[string]string
	within []string
}

func (s *script) do(line string, within []string) {
	s.t.Helper()
	a := s.parse(line)
	a.within = within
	configures := slices.Contains([]string{"pool", "node", "provider", "model", "remove", "bare", "alone", "principal"}, a.verb)
	if !configures {
		s.begin()
	}
	verbs()[a.verb](s, a)
	for k := range a.values {
		s.t.Fatalf("%q: nothing takes %s=", line, k)
	}
	if len(a.words) > 0 {
		s.t.Fatalf("%q: nothing takes %q", line, a.words)
	}
}

func (s *script) parse(line string) *args {
	a := &args{s: s, line: line, values: map[string]string{}}
	for i, f := range strings.Fields(line) {
		if i == 0 {
			a.verb = f
		} else if k, v, ok := strings.Cut(f, "="); ok {
			a.values[k] = v
		} else {
			a.words = append(a.words, f)
		}
	}
	return a
}

func (a *args) word() string {
	if len(a.words) == 0 {
		a.s.t.Fatalf("%q: a word is missing", a.line)
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *args) has(w string) bool {
	n := len(a.words)
	a.words = slices.DeleteFunc(a.words, func(x string) bool { return x == w })
	return len(a.words) < n
}

func (a *args) get(k, otherwise string) string {
	v, ok := a.values[k]
	delete(a.values, k)
	if !ok {
		return otherwise
	}
	return v
}

func (a *args) list(k string) []string {
	if v := a.get(k, ""); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

func (a *args) number(k string, otherwise int) int {
	v, ok := a.values[k]
	if !ok {
		return otherwise
	}
	delete(a.values, k)
	return a.atoi(v)
}

func (a *args) atoi(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		a.s.t.Fatalf("%q: %v", a.line, err)
	}
	return n
}

func (a *args) span(text string) Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		a.s.t.Fatalf("%q: %v", a.line, err)
	}
	return Time(d)
}

func (a *args) reason(otherwise Reason) Reason {
	name := a.get("reason", otherwise.String())
	for r := ReasonNone; r.String() != "unknown"; r++ {
		if r.String() == name {
			return r
		}
	}
	a.s.t.Fatalf("%q: no such reason", a.line)
	return 0
}

// by is the proposing session: an edge's last one, or any by its name.
func (a *args) by() SessionID {
	id, ok := a.s.edges[a.get("by", "e1")]
	if !ok {
		a.s.t.Fatalf("%q: no such session", a.line)
	}
	return id
}

// link reads "n1/2".
func (a *args) link() (NodeID, Generation) {
	n, g, ok := strings.Cut(a.word(), "/")
	if !ok {
		a.s.t.Fatalf("%q: want NODE/GENERATION", a.line)
	}
	return NodeID(n), Generation(a.atoi(g))
}

func (a *args) leases(k string) []LeaseID {
	var ls []LeaseID
	for _, r := range a.list(k) {
		ls = append(ls, a.lease(r))
	}
	return ls
}

// request reads an id, or "@129": one of that many bytes.
func (a *args) request() RequestID {
	w := a.word()
	if n, ok := strings.CutPrefix(w, "@"); ok {
		return RequestID(strings.Repeat("x", a.atoi(n)))
	}
	return RequestID(w)
}

// lease is the last one of a request, or a number: #7.
func (a *args) lease(name string) LeaseID {
	if n, ok := strings.CutPrefix(name, "#"); ok {
		return LeaseID(a.atoi(n))
	}
	id, ok := a.s.requests[name]
	if !ok {
		a.s.t.Fatalf("%q: %s never had a lease", a.line, name)
	}
	return id
}

// The configuration.

func (s *script) pool(a *args) {
	p := &s.config.Pool
	p.MaxQueue = a.number("max_queue", p.MaxQueue)
	p.QueueTimeout = a.span(a.get("queue_timeout", time.Duration(p.QueueTimeout).String()))
	p.StartupGrace = a.span(a.get("grace", time.Duration(p.StartupGrace).String()))
	p.ReattachWindow = a.span(a.get("reattach", time.Duration(p.ReattachWindow).String()))
	p.ResponsesBytes = int64(a.number("responses_bytes", int(p.ResponsesBytes)))
	p.ResponsesRetention = a.span(a.get("retention", time.Duration(p.ResponsesRetention).String()))
	if v := a.get("fairness", ""); v != "" {
		p.Fair = v == "principal"
	}
	p.FenceTimeout = a.span(a.get("fence", time.Duration(p.FenceTimeout).String()))
}

func (s *script) principal(a *args) {
	p := PrincipalConfig{ID: PrincipalID(a.word()), MaxInFlight: a.number("max", 0), MaxQueued: a.number("queued", QueuedUnlimited)}
	for _, id := range a.list("models") {
		p.Models = append(p.Models, ModelID(id))
	}
	s.config.Principals = slices.DeleteFunc(slices.Clone(s.config.Principals), func(x PrincipalConfig) bool { return x.ID == p.ID })
	s.config.Principals = append(s.config.Principals, p)
}

func (s *script) node(a *args) { s.haveNode(NodeID(a.word())) }

func (s *script) haveNode(id NodeID) {
	if !slices.Contains(s.config.Nodes, id) {
		s.config.Nodes = append(s.config.Nodes, id)
	}
}

func (s *script) model(a *args) { s.haveModel(ModelID(a.word())) }

func (s *script) haveModel(id ModelID) *ModelConfig {
	i := slices.IndexFunc(s.config.Models, func(m ModelConfig) bool { return m.ID == id })
	if i < 0 {
		i = len(s.config.Models)
		s.config.Models = append(s.config.Models, ModelConfig{ID: id})
	}
	return &s.config.Models[i]
}

func (s *script) provider(a *args) {
	p := ProviderConfig{
		ID: ProviderID(a.word()), Node: NodeID(a.get("node", "n1")), Capacity: a.number("capacity", 1),
		LongCapacity: LongUncounted, ContextWindow: int64(a.number("window", 0)), Priority: a.number("priority", 0),
		Enabled: !a.has("disabled"), Can: AllNeeds,
	}
	if v := a.get("long", "none"); v != "none" {
		p.LongCapacity = a.atoi(v)
	}
	if _, ok := a.values["can"]; ok {
		p.Can = needs(a.list("can"))
	}
	s.haveNode(p.Node)
	s.without(p.ID)
	s.config.Providers = append(s.config.Providers, p)
	for _, name := range a.list("models") {
		model, served, renamed := strings.Cut(name, "!")
		m := s.haveModel(ModelID(model))
		if !renamed {
			served = model
		}
		if !slices.ContainsFunc(m.Candidates, func(c Candidate) bool { return c.Provider == p.ID }) {
			m.Candidates = append(m.Candidates, Candidate{Provider: p.ID, Served: served})
		}
	}
}

func needs(names []string) Needs {
	var n Needs
	for _, name := range names {
		n |= map[string]Needs{
			"chat": NeedChat, "completions": NeedCompletions, "embeddings": NeedEmbeddings, "tunnel": NeedTunnel,
		}[name]
	}
	return n
}

func (s *script) without(id ProviderID) {
	s.config.Providers = slices.DeleteFunc(slices.Clone(s.config.Providers), func(p ProviderConfig) bool { return p.ID == id })
}

func (s *script) remove(a *args) {
	switch kind, id := a.word(), a.word(); kind {
	case "provider":
		s.without(ProviderID(id))
	case "model":
		s.config.Models = slices.DeleteFunc(slices.Clone(s.config.Models), func(m ModelConfig) bool { return string(m.ID) == id })
	case "node":
		s.config.Nodes = slices.DeleteFunc(slices.Clone(s.config.Nodes), func(n NodeID) bool { return string(n) == id })
	default:
		s.t.Fatalf("%q: no such kind", a.line)
	}
}

func (s *script) applyConfig(a *args) {
	s.propose(0, &ApplyConfig{
		Document: s.document(), Config: cloned(s.config), Force: a.has("force"),
		Expected: Revision(a.number("expected", int(s.m.Revision()))),
		Edge:     EdgeID(a.get("edge", "")), Offer: a.get("offer", ""),
	})
}

// cloned shares nothing with the configuration that the story goes on to change.
func cloned(c Config) Config {
	c.Nodes, c.Providers, c.Models = slices.Clone(c.Nodes), slices.Clone(c.Providers), slices.Clone(c.Models)
	for i := range c.Models {
		c.Models[i].Candidates = slices.Clone(c.Models[i].Candidates)
	}
	return c
}

// document stands for the canonical bytes: as different as the configuration is.
func (s *script) document() []byte { return fmt.Append(nil, s.config) }

// What belongs to no session.

func (s *script) open(a *args) {
	nonce := uint64(a.number("nonce", 100+int(s.m.Index())))
	s.propose(0, &OpenSession{Edge: EdgeID(a.word()), Nonce: nonce})
}

func (s *script) raise(a *args) { s.propose(0, &RaiseLevel{Level: uint32(a.atoi(a.word()))}) }

func (s *script) digest(a *args) {
	c := &DigestCheck{Index: uint64(a.atoi(a.word()))}
	if c.Digest = s.digestAt(c.Index); a.word() == "wrong" {
		c.Digest[0]++
	}
	s.propose(0, c)
}

// digestAt is the digest that the machine had after an entry.
func (s *script) digestAt(index uint64) [32]byte {
	at := New()
	for _, e := range s.entries {
		if e.Index <= index {
			at.Apply(e)
		}
	}
	return at.Digest()
}

func (s *script) end(a *args) {
	id, ok := s.edges[a.words[0]]
	if !ok {
		s.t.Fatalf("%q: no such session", a.line)
	}
	a.word()
	edge := EdgeID("e1")
	for k, v := range s.edges {
		if v == id && strings.HasPrefix(k, "e") {
			edge = EdgeID(k)
		}
	}
	s.propose(0, &EndSession{Edge: EdgeID(a.get("edge", string(edge))), Session: id, Reason: a.reason(ReasonSessionEnded), Alive: a.has("alive"), Apart: a.has("apart"), Since: a.span(a.get("since", "0s"))})
}

func (s *script) advance(a *args) { s.elapsed += a.span(a.word()) }

func (s *script) expire(a *args) { s.propose(0, &Expire{Term: uint64(a.number("term", 1))}) }

func (s *script) evict(a *args) { s.propose(0, &Evict{Request: RequestID(a.word())}) }

func (s *script) drain(a *args) {
	d := &Drain{On: a.verb == "drain"}
	if a.has("node") {
		d.Node = NodeID(a.word())
	} else {
		d.Provider = ProviderID(a.word())
	}
	s.propose(0, d)
}

// What a session proposes.

func (s *script) simple(a *args) {
	c := s.command(a)
	s.propose(a.by(), c)
}

func (s *script) batch(a *args) {
	by := a.by()
	if a.has("nobody") {
		by = 0
	}
	b := Batch{Session: by, Seq: uint64(a.number("seq", 0)), AckBelow: uint64(a.number("ack", 1))}
	for _, line := range a.within {
		x := s.parse(line)
		b.Commands = append(b.Commands, s.command(x))
	}
	b.Sum = uint64(a.number("sum", int(sum(b.Commands)>>1)))
	s.seq[b.Session] = max(s.seq[b.Session], b.Seq+1)
	s.apply(b, false)
}

func (s *script) command(a *args) Command {
	switch a.verb {
	case "admit":
		c := &Admit{
			Request: a.request(), Model: ModelID(a.get("model", "m")), InputTokens: int64(a.number("tokens", 0)),
			Needs: needs(a.list("needs")), MaxWait: a.span(a.get("wait", "0s")),
			Provider: ProviderID(a.get("provider", "")), Served: a.get("served", ""), Place: Enqueue(a.number("place", 0)),
		}
		c.Principal, c.Token = PrincipalID(a.get("of", "")), a.get("token", "")
		c.Metered = c.Principal != "" && !a.has("unmetered")
		c.Fingerprint[0] = byte(a.number("fp", 0))
		if a.has("long") {
			c.Class = ClassLong
		}
		return c
	case "submit", "progress", "keep", "forget":
		return s.responseCommand(a)
	case "announce":
		c := &Announce{}
		if len(a.words) > 0 {
			c.Address = a.word()
		}
		return c
	case "cancel":
		return &Cancel{Request: RequestID(a.word())}
	case "release":
		c := &Release{Lease: a.lease(a.word()), Reason: a.reason(ReasonDone), Requeue: a.has("requeue"), Unsent: a.has("unsent")}
		if tokens := a.list("used"); len(tokens) > 0 { // prompt,completion,cached,reasoning
			u := [4]int{}
			for i, n := range tokens {
				u[i] = a.atoi(n)
			}
			c.Usage = Usage{Told: true, Prompt: int64(u[0]), Completion: int64(u[1]), Cached: int64(u[2]), Reasoning: int64(u[3])}
		}
		return c
	case "register":
		return &RegisterNode{
			Node: NodeID(a.word()), Instance: uint64(a.number("instance", 1)),
			Supersede: Generation(a.number("supersede", 0)), Running: a.leases("running"),
		}
	}
	n, g := a.link()
	switch a.verb {
	case "ready":
		return &NodeReady{Node: n, Generation: g}
	case "lost":
		return &LinkLost{Node: n, Generation: g, Reason: a.reason(ReasonLinkLost)}
	case "report":
		return &LinkReport{Node: n, Generation: g, Running: a.leases("running")}
	case "health":
		c := &SetHealth{Node: n, Generation: g, Provider: ProviderID(a.word()), Cause: a.get("cause", "")}
		if a.word() == "degraded" {
			c.Health = Degraded
		}
		return c
	}
	s.t.Fatalf("%q: no such command", a.line)
	return nil
}

// A token of a story is a word of at most 32 bytes.
func tokenHash(name string) (h TokenHash) {
	copy(h[:], name)
	return h
}

func (s *script) join(a *args) {
	s.propose(0, &AddJoin{Token: tokenHash(a.word()), Node: NodeID(a.get("node", "n1")), TTL: a.span(a.get("ttl", "1h"))})
}

func (s *script) redeem(a *args) {
	s.propose(0, &RedeemJoin{Token: tokenHash(a.word()), NodeToken: tokenHash(a.get("as", ""))})
}
