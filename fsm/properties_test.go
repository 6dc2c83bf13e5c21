package fsm_test

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "iop/fsm"
)

// history is a random stream of entries.
func history(t *testing.T, seed uint64, commands int) []*Entry {
	t.Helper()
	p := newPair(true)
	g := newGenerator(seededBy(seed), p.n)
	for g.count < commands {
		if _, err := p.step(g.entry()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	return p.entries
}

// TestReplay: the same entries give the same outcomes, effects and digest at every index (I9).
func TestReplay(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+20; seed++ {
		a, b := New(), New()
		for _, e := range history(t, seed, 1000) {
			if err := sameResult(a.Apply(e), b.Apply(e)); err != nil {
				t.Fatalf("seed %d entry %d: %v", seed, e.Index, err)
			}
			if a.Digest() != b.Digest() {
				t.Fatalf("seed %d entry %d: digests differ", seed, e.Index)
			}
		}
	}
}

// sameResult compares the results of two machines of one kind: order and all.
func sameResult(a, b Result) error {
	if !sameOutcomes(a.Outcomes, b.Outcomes) {
		return fmt.Errorf("outcomes: %s", gocmp.Diff(a.Outcomes, b.Outcomes))
	}
	if !slices.Equal(a.Effects, b.Effects) {
		return fmt.Errorf("effects: %s", gocmp.Diff(a.Effects, b.Effects))
	}
	return nil
}

// TestRestoreHasTheSameFuture: a machine from an image at any moment has the digest of the original, and goes the same
// way (I9). The restored one is restored again and again, the original never.
func TestRestoreHasTheSameFuture(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+20; seed++ {
		entries := history(t, seed, 1500)
		original, copied := New(), New()
		for i, e := range entries {
			if i%7 == 0 {
				copied = restored(t, copied)
			}
			if err := sameResult(original.Apply(e), copied.Apply(e)); err != nil {
				t.Fatalf("seed %d entry %d: %v", seed, e.Index, err)
			}
			if original.Digest() != copied.Digest() {
				t.Fatalf("seed %d entry %d: digests differ:\n%s", seed, e.Index,
					gocmp.Diff(original.Image(), copied.Image(), cmpopts.EquateEmpty()))
			}
			at, some := original.NextDeadline()
			if at2, some2 := copied.NextDeadline(); at != at2 || some != some2 {
				t.Fatalf("seed %d entry %d: next deadline %d %v, restored %d %v", seed, e.Index, at, some, at2, some2)
			}
		}
	}
}

// TestImageSharesNothing: an image stays what it was while the machine goes on, and changing it changes nothing.
func TestImageSharesNothing(t *testing.T) {
	m := New()
	for i, e := range history(t, *flagSeed, 1500) {
		im := m.Image()
		before := im.Digest()
		m.Apply(e)
		if im.Digest() != before {
			t.Fatalf("entry %d changed an image of before it", e.Index)
		}
		if i%50 == 0 {
			spoil(m.Image())
			if err := m.Check(); err != nil {
				t.Fatalf("entry %d: after its image was changed: %v", e.Index, err)
			}
		}
	}
}

func spoil(im *Image) {
	for i := range im.Document {
		im.Document[i]++
	}
	for i := range im.Config.Providers {
		im.Config.Providers[i].Capacity += 100
	}
	for i := range im.Config.Models {
		for j := range im.Config.Models[i].Candidates {
			im.Config.Models[i].Candidates[j].Provider = "spoiled"
		}
	}
	for i := range im.Nodes {
		for j := range im.Nodes[i].Links {
			im.Nodes[i].Links[j].State = LinkFenced
		}
	}
	for i := range im.Usage {
		im.Usage[i].Requests += 100
	}
	for i := range im.Config.Principals {
		im.Config.Principals[i].MaxInFlight++
		for j := range im.Config.Principals[i].Models {
			im.Config.Principals[i].Models[j] = "spoiled"
		}
	}
	for i := range im.Requests {
		for j := range im.Requests[i].Excluded {
			im.Requests[i].Excluded[j] = "spoiled"
		}
	}
}

// TestCutsDoNotMatter: the same commands of a session, cut into other batches and entries, lead to the same state, apart
// from the numbers of the log itself.
func TestCutsDoNotMatter(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+40; seed++ {
		commands := stream(t, seed, 400)
		var want *Image
		for _, cut := range []int{1, 2, 5, 17} {
			m := replayCut(commands, cut, seededBy(seed))
			if err := m.Check(); err != nil {
				t.Fatalf("seed %d cut %d: %v", seed, cut, err)
			}
			got := withoutLog(m.Image())
			if want == nil {
				want = got
			}
			if want.Digest() != got.Digest() {
				t.Fatalf("seed %d cut %d (-by one +cut):\n%s", seed, cut, gocmp.Diff(want, got, cmpopts.EquateEmpty()))
			}
		}
	}
}

// timed is a command with its session's edge ("" for none) and its time.
type timed struct {
	command Command
	edge    EdgeID
	at      Time
}

// stream makes single commands that all took effect once: what the random batches hold, without repetitions.
func stream(t *testing.T, seed uint64, count int) []timed {
	t.Helper()
	p := newPair(false)
	g := newGenerator(seededBy(seed), p.n)
	g.next = map[SessionID]uint64{}
	var out []timed
	now := Millisecond
	for len(out) < count {
		now += Time(g.pick(12)/10) * Millisecond
		x := timed{at: now}
		if s := g.session(); p.n.session(s) != nil && !g.one(8) {
			x.command, x.edge = g.sessionCommand(s), p.n.session(s).edge
		} else {
			x.command = g.clusterCommand(&Entry{Term: 1})
		}
		if e, ok := x.command.(*Expire); ok {
			e.Term = 1
		}
		if end, ok := x.command.(*EndSession); ok && p.n.session(end.Session) != nil {
			end.Edge = p.n.session(end.Session).edge
		}
		b := Batch{Commands: []Command{x.command}}
		for _, s := range p.n.sessions {
			if s.edge == x.edge {
				b.Session, b.Seq, b.AckBelow = s.id, s.nextSeq, s.nextSeq
			}
		}
		if _, err := p.step(&Entry{Index: p.n.index + 1, Term: 1, Elapsed: x.at, Batches: []Batch{b}}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		out = append(out, x)
	}
	return out
}

// replayCut applies the commands in entries of at most so many commands of one time, each cut into batches at random. A
// session is named by the entry that opened it, so an opening begins an entry, whose index is its place in the stream.
func replayCut(commands []timed, most int, by picker) *Machine {
	m := New()
	seq := map[SessionID]uint64{}
	for i := 0; i < len(commands); {
		e := &Entry{Index: uint64(i + 1), Term: 1, Elapsed: commands[i].at}
		begin := i
		for i < len(commands) && i < begin+most && commands[i].at == e.Elapsed {
			_, opens := commands[i].command.(*OpenSession)
			if opens && i > begin {
				break
			}
			x := commands[i]
			i++
			if last := len(e.Batches) - 1; i > begin+1 && commands[i-2].edge == x.edge && by.pick(3) > 0 {
				e.Batches[last].Commands = append(e.Batches[last].Commands, x.command)
			} else {
				e.Batches = append(e.Batches, Batch{Commands: []Command{x.command}})
				if x.edge != "" {
					b := &e.Batches[len(e.Batches)-1]
					b.Session, _ = m.CurrentSession(x.edge)
					seq[b.Session]++
					b.Seq = seq[b.Session]
				}
			}
			if ends(x.command) { // who proposes next is only known behind it
				break
			}
		}
		m.Apply(e)
	}
	return m
}

func ends(c Command) bool {
	switch c.(type) {
	case *OpenSession, *EndSession:
		return true
	}
	return false
}

// withoutLog is an image without what tells of the log: indexes and the stored answers to batches.
func withoutLog(im *Image) *Image {
	im.Index = 0
	for i := range im.Sessions {
		s := &im.Sessions[i]
		s.NextSeq, s.AckBelow, s.Batches = 0, 0, nil
	}
	for i := range im.Requests {
		im.Requests[i].EnqueuedIndex, im.Requests[i].GrantedIndex = 0, 0
	}
	return im
}

// TestResentBatchChangesNothing: batches of sessions that are sent again answer the same and leave the state alone,
// stored answers and all.
func TestResentBatchChangesNothing(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+10; seed++ {
		p := newPair(false)
		g := newGenerator(seededBy(seed), p.n)
		g.gap = 10 // room for entries between
		again := 0
		for g.count < 1000 {
			e := g.entry()
			res, err := p.step(e)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			outcomes := slices.Clone(res.Outcomes)
			before := p.m.Image()
			for i, b := range e.Batches {
				if b.Session == 0 || outcomes[i][0].Code == SequenceGap {
					continue
				}
				again++
				more := &Entry{Index: p.m.Index() + 1, Term: e.Term, Elapsed: e.Elapsed, Wall: e.Wall, Batches: []Batch{b}}
				res, err := p.step(more)
				if err != nil {
					t.Fatalf("seed %d: again: %v", seed, err)
				}
				if len(res.Effects) > 0 {
					t.Fatalf("seed %d: again: effects %v", seed, res.Effects)
				}
				if len(e.Batches) == 1 && p.n.session(b.Session) != nil && !sameOutcomes(res.Outcomes, outcomes) {
					t.Fatalf("seed %d: again: %s", seed, gocmp.Diff(outcomes, res.Outcomes))
				}
			}
			after := p.m.Image()
			after.Index = before.Index
			if before.Digest() != after.Digest() {
				t.Fatalf("seed %d: again: %s\n%s", seed, show(e), gocmp.Diff(before, after))
			}
		}
		if again < 100 {
			t.Errorf("seed %d: only %d batches were sent again", seed, again)
		}
	}
}

// TestStreamReplayedTwice: a whole stream of session batches that comes a second time changes nothing.
func TestStreamReplayedTwice(t *testing.T) {
	p := beginning(t, smallConfig(1, 2))
	session := p.n.sessions[0]
	var stream []Batch
	apply := func(b Batch) Result {
		res, err := p.step(&Entry{Index: p.m.Index() + 1, Term: 1, Elapsed: p.n.now, Batches: []Batch{b}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	g := newGenerator(seededBy(*flagSeed), p.n)
	var outcomes [][][]Outcome
	for range 300 {
		b := Batch{Session: session.id, Seq: session.nextSeq, AckBelow: 1, Commands: []Command{g.sessionCommand(session.id)}}
		b.Sum = sum(b.Commands)
		stream = append(stream, b)
		outcomes = append(outcomes, apply(b).Outcomes)
	}
	before := p.m.Image()
	for i, b := range stream {
		res := apply(b)
		if !sameOutcomes(res.Outcomes, outcomes[i]) || len(res.Effects) > 0 {
			t.Fatalf("batch %d: %v, first %v", b.Seq, res, outcomes[i])
		}
	}
	after := p.m.Image()
	after.Index = before.Index
	if before.Digest() != after.Digest() {
		t.Fatal(gocmp.Diff(before, after))
	}
}

// TestExpireIsBounded: one expiry makes at most ExpireMax ends, the earliest first; the next one goes on.
func TestExpireIsBounded(t *testing.T) {
	c := smallConfig(1, 1)
	c.Pool.MaxQueue = 10_000
	p := beginning(t, c)
	for i := range ExpireMax + 102 {
		if err := p.command(&Admit{Request: RequestID(fmt.Sprint("r", i)), Model: "m"}, "e1"); err != nil {
			t.Fatal(err)
		}
	}
	now := Time(1000)
	m := restored(t, p.m)
	for _, want := range []int{ExpireMax, 100, 0} {
		res := m.Apply(&Entry{Index: m.Index() + 1, Term: 1, Elapsed: now, Batches: []Batch{{Commands: []Command{&Expire{Term: 1}}}}})
		if got := res.Outcomes[0][0].Count; got != want || len(res.Effects) != want {
			t.Fatalf("ends %d, effects %d, want %d", got, len(res.Effects), want)
		}
		for i, e := range res.Effects {
			if i > 0 && len(e.Request) < len(res.Effects[i-1].Request) {
				t.Fatalf("%s ended behind %s", e.Request, res.Effects[i-1].Request)
			}
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEntryOutOfOrderPanics: an entry that is not behind the last one is no refusal but a broken log.
func TestEntryOutOfOrderPanics(t *testing.T) {
	m := New()
	m.Apply(&Entry{Index: 5, Term: 1})
	defer func() {
		if recover() == nil {
			t.Error("entry 5 was applied twice")
		}
	}()
	m.Apply(&Entry{Index: 5, Term: 1})
}

// TestRestoreRefusesContradictions: an image whose rows contradict each other is an error, not a machine.
func TestRestoreRefusesContradictions(t *testing.T) {
	p := beginning(t, smallConfig(1, 1))
	for _, c := range []Command{
		&Admit{Request: "a", Model: "o"}, &Admit{Request: "b", Model: "o"}, &Admit{Request: "c", Model: "m"},
	} {
		if err := p.command(c, "e1"); err != nil {
			t.Fatal(err)
		}
	}
	spoilers := map[string]func(*Image){
		"a granted counter":     func(im *Image) { im.Granted++ },
		"a provider's counter":  func(im *Image) { im.Providers[0].Returned++ },
		"a lease without link":  func(im *Image) { im.Nodes[0].Links = nil },
		"a lease of the future": func(im *Image) { im.NextLease = 1 },
		"a place of the future": func(im *Image) { im.NextEnqueue = 1 },
		"a missing session":     func(im *Image) { im.Sessions = nil },
		"a missing node":        func(im *Image) { im.Nodes = im.Nodes[1:] },
		"a missing provider":    func(im *Image) { im.Providers = im.Providers[1:] },
		"a request twice":       func(im *Image) { im.Requests = append(im.Requests, im.Requests[0]) },
		"a waiter with a slot":  func(im *Image) { im.Config.Providers[0].Capacity, im.Providers[0].Config.Capacity = 9, 9 },
		"a waiter of nothing":   func(im *Image) { im.Nodes[0].Draining = true },
		"a fenced state":        func(im *Image) { im.Requests[0].State = StateFencing },
	}
	for what, spoil := range spoilers {
		im := p.m.Image()
		spoil(im)
		if _, err := Restore(im); err == nil {
			t.Errorf("%s: restored", what)
		}
	}
	if _, err := Restore(p.m.Image()); err != nil {
		t.Error(err)
	}
}
