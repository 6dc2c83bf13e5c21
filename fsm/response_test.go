package fsm_test

import (
	"fmt"
	"testing"
	"time"

	. "iop/fsm"
)

// responseCommand reads what a story says of a response.
func (s *script) responseCommand(a *args) Command {
	id := ResponseID(a.word())
	p := Payload{Record: make([]byte, a.number("bytes", 0)), Events: make([]byte, a.number("events", 0)), Count: 0}
	p.Count = int64(len(p.Events))
	if n := a.number("object", 0); n > 0 {
		p.Object = make([]byte, n)
	}
	status := func(otherwise string) (st ResponseStatus) {
		for name := a.get("status", otherwise); st.String() != name; st++ {
			if st > ResponseIncomplete {
				s.t.Fatalf("%q: no such status", a.line)
			}
		}
		return st
	}
	switch a.verb {
	case "submit":
		c := &Submit{Response: id, Payload: p}
		c.Request = Admit{Model: ModelID(a.get("model", "m")), InputTokens: int64(a.number("tokens", 0)), Principal: PrincipalID(a.get("principal", ""))}
		return c
	case "progress":
		c := &Progress{Response: id, Status: status("in_progress"), Payload: p}
		if on := a.get("on", string(id)); on != "nothing" {
			c.Lease = a.lease(on)
		}
		return c
	case "keep":
		return &Keep{Response: id, Status: status("completed"), Payload: p}
	}
	return &Forget{Response: id}
}

// showResponses tells of the stored responses.
func (s *script) showResponses() {
	stored, live, bytes := s.m.ResponsesCount()
	s.out = append(s.out, fmt.Sprintf("stored=%d live=%d bytes=%d", stored, live, bytes))
	for _, r := range s.m.Responses() {
		w := fmt.Sprintf("response %s %s attempt=%d lost=%d events=%d bytes=%d since=%v", r.ID, r.Status, r.Attempt, r.Lost, r.Events, r.Bytes, time.Duration(r.Since))
		if r.Cause != RefusalNone {
			w += " cause=" + r.Cause.String()
		}
		s.out = append(s.out, w)
	}
}

// TestRandomResponses: whatever becomes of sessions, links and providers, every background response that was taken ends
// once or is forgotten, its events have no gap, a restored machine goes on in the same way, and the invariants hold.
func TestRandomResponses(t *testing.T) {
	seen := tally{}
	for seed := *flagSeed; seed < *flagSeed+12; seed++ {
		if err := responseWorld(t, seededBy(seed<<20), seen); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for _, what := range []string{"queued", "done", "stale", "refused store_full", "refused conflict", "waiter granted", "lease returned heartbeat"} {
		if seen[what] == 0 {
			t.Errorf("no world saw %q", what)
		}
	}
}

// responses are what a world knows of its vault, from the writes alone.
type responses struct {
	events map[ResponseID]int64
	ended  map[ResponseID]bool
}

func responseWorld(t *testing.T, by picker, seen tally) error {
	g := &generator{picker: by, n: newNaive()} // of its choices only
	m := New()
	w := responses{map[ResponseID]int64{}, map[ResponseID]bool{}}
	seq := map[SessionID]uint64{}
	config := smallConfig(2, 1)
	config.Pool = Pool{MaxQueue: 6, QueueTimeout: 300 * Millisecond, StartupGrace: 40 * Millisecond, ReattachWindow: 50 * Millisecond, FenceTimeout: 60 * Millisecond, ResponsesBytes: 9 * 1024, ResponsesRetention: 3 * Second}
	now := Millisecond
	apply := func(session SessionID, c Command) (Outcome, error) {
		b := Batch{Session: session, Commands: []Command{c}, Sum: sum([]Command{c})}
		if session != 0 {
			seq[session]++
			b.Seq, b.AckBelow = seq[session], seq[session]
		}
		now += Time(by.pick(4)) * 5 * Millisecond
		res := m.Apply(&Entry{Index: m.Index() + 1, Term: 1, Elapsed: now, Batches: []Batch{b}})
		seen.add(res)
		if err := m.Check(); err != nil {
			return Outcome{}, err
		}
		if err := w.take(res.Writes, m); err != nil {
			return Outcome{}, err
		}
		return res.Outcomes[0][0], nil
	}
	if _, err := apply(0, &ApplyConfig{Document: []byte("1"), Config: config}); err != nil {
		return err
	}
	for i := range 1500 {
		var s SessionID
		edge := choose[EdgeID](g, "e1", "e2")
		if id, ok := m.CurrentSession(edge); ok && by.pick(60) > 0 {
			s = id
		} else {
			o, err := apply(0, &OpenSession{Edge: edge, Nonce: uint64(i + 1)})
			if err != nil {
				return err
			}
			s = o.Session
		}
		c := responseStep(g, m, config)
		if c == nil {
			continue
		}
		if _, err := apply(s, c); err != nil {
			return fmt.Errorf("after %s: %w", show(&Entry{Batches: []Batch{{Commands: []Command{c}}}}), err)
		}
		if i%50 == 0 {
			m = restored(t, m)
		}
	}
	// Everything comes to its end by itself.
	for range 2000 {
		at, some := m.NextDeadline()
		if !some {
			break
		}
		now = max(now, at)
		if _, err := apply(0, &Expire{Term: 1}); err != nil {
			return err
		}
	}
	if stored, _, bytes := m.ResponsesCount(); stored != 0 || bytes != 0 || len(w.events) != 0 {
		return fmt.Errorf("after the end %d responses are stored with %d bytes, %d in the vault", stored, bytes, len(w.events))
	}
	return nil
}

// take follows the writes as a vault does.
func (w *responses) take(writes []Write, m *Machine) error {
	for _, x := range writes {
		if x.Drop {
			delete(w.events, x.Response)
			delete(w.ended, x.Response)
			continue
		}
		if x.From != w.events[x.Response] {
			return fmt.Errorf("events of %s go on at %d, there are %d", x.Response, x.From, w.events[x.Response])
		}
		if w.ended[x.Response] && len(x.Events)+len(x.Object)+len(x.Record) > 0 {
			return fmt.Errorf("%s is written to after its end", x.Response)
		}
		w.events[x.Response] += x.Count
	}
	for id := range w.events {
		row, _, ok := m.Response(id)
		if !ok {
			return fmt.Errorf("%s is in the vault and not in the machine", id)
		}
		if row.Events != w.events[id] {
			return fmt.Errorf("%s has %d events, %d were written", id, row.Events, w.events[id])
		}
		if w.ended[id] && !row.Status.Final() {
			return fmt.Errorf("%s had ended and has not any more", id)
		}
		w.ended[id] = row.Status.Final()
	}
	if rows := m.Responses(); len(rows) != len(w.events) {
		return fmt.Errorf("%d rows, %d in the vault", len(rows), len(w.events))
	}
	return nil
}

// responseStep invents a command.
func responseStep(g *generator, m *Machine, config Config) Command {
	id := ResponseID(fmt.Sprint("x", g.pick(9)))
	payload := func() Payload {
		n := g.pick(4)
		return Payload{Object: make([]byte, 1+g.pick(900)), Events: make([]byte, n*100), Count: int64(n)}
	}
	row, lease, ok := m.Response(id)
	node := NodeID("n1")
	if len(config.Nodes) > 1 && g.one(2) {
		node = config.Nodes[1]
	}
	var links []LinkView
	for _, n := range m.Snapshot().Nodes {
		links = append(links, n.Links...)
	}
	switch k := g.pick(20); {
	case k < 5:
		return &Submit{Response: id, Request: Admit{Model: "m", Principal: choose[PrincipalID](g, "", "ann"), Metered: g.one(2)}, Payload: payload()}
	case k < 9 && ok && lease != 0:
		if g.one(8) {
			lease--
		}
		return &Progress{Response: id, Lease: lease, Status: choose(g, ResponseInProgress, ResponseInProgress, ResponseCompleted, ResponseFailed), Payload: payload()}
	case k < 10 && ok:
		return &Progress{Response: id, Status: ResponseCancelled, Payload: payload()}
	case k < 11:
		return &Keep{Response: choose(g, id, ResponseID(fmt.Sprint("y", g.pick(9)))), Status: ResponseCompleted, Payload: payload()}
	case k < 12 && ok && (row.Status.Final() || g.one(4)):
		return &Forget{Response: id}
	case k < 14:
		if leases := m.Leases(); len(leases) > 0 {
			return &Release{Lease: choose(g, leases...).Lease, Reason: choose(g, ReasonDone, ReasonNotRun, ReasonBackendError, ReasonNeverSent), Requeue: g.one(3)}
		}
	case k < 15:
		return &Admit{Request: g.requestID(), Model: "m", Principal: "ann"}
	case k < 17:
		for _, l := range links {
			if l.State == LinkPending {
				return &NodeReady{Node: l.Node, Generation: l.Generation}
			}
		}
		return &RegisterNode{Node: node, Instance: 1}
	case k < 18 && len(links) > 0:
		l := choose(g, links...)
		return &LinkLost{Node: l.Node, Generation: l.Generation, Reason: ReasonHeartbeat}
	case k < 19:
		if at, some := m.NextDeadline(); some && at <= m.Now() || g.one(3) {
			return &Expire{Term: m.Term()}
		}
	}
	return nil
}
