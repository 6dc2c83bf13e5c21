package fsm_test

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	. "iop/fsm"
)

var (
	flagSeed     = flag.Uint64("fsm.seed", 1, "first seed of the random runs")
	flagCommands = flag.Int("fsm.commands", 1_000_000, "commands of the random runs, in total")
)

// worldCommands is how long one random world lives.
const worldCommands = 10_000

// TestRandomAgainstNaive compares the machine with the naive model over many seeded worlds: outcomes, effects and
// invariants after each entry, the whole state every few entries, and nothing held at the end.
func TestRandomAgainstNaive(t *testing.T) {
	total := *flagCommands
	if testing.Short() {
		total = min(total, 50_000)
	}
	seen := tally{}
	rare := total >= 1_000_000
	for seed := *flagSeed; total > 0; seed++ {
		n, err := randomWorld(seededBy(seed), min(worldCommands, total), 16, seen)
		if err != nil {
			t.Fatalf("seed %d (again with -run %s -fsm.seed=%d): %v", seed, t.Name(), seed, err)
		}
		total -= n
	}
	for _, what := range everything() {
		if rare && seen[what] == 0 {
			t.Errorf("no random world saw %q", what)
		}
	}
	t.Logf("seen: %v", seen)
}

// tally counts what happened, so that a generator that has become idle is noticed.
type tally map[string]int

func (y tally) add(res Result) {
	for _, batch := range res.Outcomes {
		for _, o := range batch {
			y[o.Code.String()]++
			if o.Code == Refused {
				y["refused "+o.Refusal.String()]++
			}
			if o.Code == Queued && o.Position == 0 {
				y["queued at its old place"]++
			}
			if len(o.Counted) > 0 {
				y["registered with counted leases"]++
			}
		}
	}
	for _, e := range res.Effects {
		switch e.Kind {
		case EffectGranted:
			y["waiter granted"]++
		case EffectEnded:
			y["waiter ended "+e.Refusal.String()]++
		case EffectReturned:
			y["lease returned "+e.Reason.String()]++
		case EffectLinkFenced:
			y["link fenced "+e.Reason.String()]++
		}
	}
}

// everything is what a million commands must have shown.
func everything() []string {
	all := []string{
		"queued at its old place", "registered with counted leases", "waiter granted",
		"waiter ended unavailable", "waiter ended draining", "waiter ended queue_timeout", "waiter ended abandoned",
		"waiter ended model_not_found", "waiter ended context_too_long", "waiter ended unsupported",
		"lease returned session_ended", "lease returned superseded", "lease returned heartbeat", "lease returned removed",
		"lease returned reported", "lease returned fence_timeout",
		"link fenced session_ended", "link fenced superseded", "link fenced heartbeat", "link fenced removed",
	}
	for c := Granted; c.String() != "unknown" || c == Unknown; c++ {
		all = append(all, c.String())
	}
	for _, r := range []Refusal{
		RefusalModelNotFound, RefusalQueueFull, RefusalUnavailable, RefusalContextTooLong, RefusalDraining,
		RefusalInProgressElsewhere, RefusalUnknownNode, RefusalDuplicate, RefusalConflict, RefusalMalformed, RefusalUnsupported,
		RefusalUnknownToken, RefusalExpired,
	} {
		all = append(all, "refused "+r.String())
	}
	return all
}

// TestRandomShortWorlds are many short lives with the whole state compared after each entry.
func TestRandomShortWorlds(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+100; seed++ {
		if _, err := randomWorld(seededBy(seed<<32), 200, 1, tally{}); err != nil {
			t.Fatalf("seed %d (again with -run %s -fsm.seed=%d): %v", seed, t.Name(), seed, err)
		}
	}
}

// TestManyComeBack: a long queue whose session ended is taken over in any order, with newcomers and cancellations
// between, and is served in the order of the first enqueues.
func TestManyComeBack(t *testing.T) {
	for seed := *flagSeed; seed < *flagSeed+5; seed++ {
		by := seededBy(seed)
		c := smallConfig(1, 1)
		c.Pool = Pool{MaxQueue: 1000, QueueTimeout: 10_000, StartupGrace: 5_000, ReattachWindow: 9_000}
		p := beginning(t, c)
		do := func(c Command) {
			if err := p.command(c, "e1"); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		id := func(i int) RequestID { return RequestID(fmt.Sprint("r", i)) }
		const old = 150
		for i := range old {
			do(&Admit{Request: id(i), Model: "m", Fingerprint: Fingerprint{byte(i % 9)}})
		}
		do(&OpenSession{Edge: "e1", Nonce: 2})
		for i := range 4 * old {
			switch i := i % old; by.pick(5) {
			case 0:
				do(&Cancel{Request: id(by.pick(old))})
			case 1:
				do(&Admit{Request: id(1000 + i), Model: "m"})
			default:
				do(&Admit{Request: id(by.pick(old)), Model: "m", Fingerprint: Fingerprint{byte(by.pick(9))}})
			}
		}
		do(&RegisterNode{Node: "n1", Instance: 1})
		do(&NodeReady{Node: "n1", Generation: 2})
		for i := 0; len(p.n.leases("", 0)) > 0; i++ {
			do(&Release{Lease: p.n.leases("", 0)[0].Lease})
			if by.pick(3) == 0 {
				do(&Cancel{Request: id(by.pick(old))})
			}
			if i%10 == 0 {
				if err := p.compare(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		if err := p.zero(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestRapidAgainstNaive is the same with choices that rapid can shrink.
func TestRapidAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if _, err := randomWorld(drawn{t}, rapid.IntRange(1, 150).Draw(t, "commands"), 1, tally{}); err != nil {
			t.Fatal(err)
		}
	})
}

type drawn struct{ t *rapid.T }

func (d drawn) pick(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "") }

// randomWorld makes at least so many commands and compares the whole state every so many entries.
func randomWorld(by picker, commands, every int, seen tally) (int, error) {
	p := newPair(false)
	g := newGenerator(by, p.n)
	for i := 1; g.count < commands; i++ {
		e := g.entry()
		res, err := p.step(e)
		if err != nil {
			return g.count, fmt.Errorf("command %d: %s\n%w", g.count, show(e), err)
		}
		seen.add(res)
		if i%every == 0 {
			if err := p.compare(); err != nil {
				return g.count, fmt.Errorf("after command %d: %s\n%w", g.count, show(e), err)
			}
		}
	}
	return g.count, p.zero()
}
