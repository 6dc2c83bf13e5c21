package fsm_test

import (
	"fmt"
	"testing"

	. "iop/fsm"
)

// spend runs one metered request to its end on a day, for a principal.
func (p *pair) spend(t *testing.T, day int64, who string) {
	t.Helper()
	wall := day * 24 * 3600 * int64(Second)
	for _, c := range []Command{
		&Admit{Request: "r", Model: "m", Principal: PrincipalID(who), Token: "t", Metered: true},
		&Release{Lease: p.m.NextLease(), Reason: ReasonDone, Usage: Usage{Told: true, Prompt: 2, Completion: 1}},
	} {
		id, _ := p.m.CurrentSession("e1")
		row := p.m.Image().Sessions[0]
		p.m.Apply(&Entry{Index: p.m.Index() + 1, Term: 1, Elapsed: p.m.Now(), Wall: wall, Batches: []Batch{{Session: id, Seq: row.NextSeq, AckBelow: row.NextSeq, Commands: []Command{c}}}})
	}
}

// TestTheLedgerKeepsSoManyDays: of more days than are kept the first are summed up, and no run is lost. A wall clock that
// leaps far ahead once costs one day, not all.
func TestTheLedgerKeepsSoManyDays(t *testing.T) {
	p := beginning(t, smallConfig(1, 1))
	p.spend(t, 99_999, "leap")
	for day := range int64(UsageDaysMax + 20) {
		p.spend(t, 1000+day, "ann")
	}
	p.spend(t, 5, "late") // older than all that is kept
	if err := p.m.Check(); err != nil {
		t.Fatal(err)
	}
	rows := p.m.Usage()
	if len(rows) != UsageDaysMax+1 {
		t.Fatalf("%d rows", len(rows))
	}
	if rest := rows[0]; rest.UsageKey != (UsageKey{}) || rest.Requests != 22 || rest.Prompt != 44 {
		t.Errorf("the rest is %+v", rest)
	}
	if rows[1].Day != 1021 || rows[len(rows)-1].Day != 99_999 {
		t.Errorf("days from %d to %d", rows[1].Day, rows[len(rows)-1].Day)
	}
	if again := restored(t, p.m); len(again.Usage()) != len(rows) {
		t.Error("restored otherwise")
	}
}

// TestTheLedgerKeepsSoManyRows: when one day more than fills the ledger, older days go first, and then what is new is summed
// up without names.
func TestTheLedgerKeepsSoManyRows(t *testing.T) {
	p := beginning(t, smallConfig(1, 1))
	im := p.m.Image()
	for i := range UsageRowsMax - 1 {
		im.Usage = append(im.Usage, UsageRow{UsageKey: UsageKey{Day: 10, Principal: PrincipalID(fmt.Sprint(i)), Provider: "p1"}, Requests: 1})
	}
	im.Usage = append(im.Usage, UsageRow{UsageKey: UsageKey{Day: 9, Principal: "old", Provider: "p1"}, Requests: 1})
	im.Metered = UsageRowsMax
	m, err := Restore(im)
	if err != nil {
		t.Fatal(err)
	}
	p.m = m
	p.spend(t, 10, "new")   // day 9 goes
	p.spend(t, 10, "newer") // no room
	p.spend(t, 10, "new")
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	got := map[UsageKey]uint64{}
	for _, r := range m.Usage() {
		if r.Provider == "" || r.Principal == "new" {
			r.Model, r.Token, r.Provider = "", "", ""
			got[r.UsageKey] += r.Requests
		}
	}
	if got[UsageKey{}] != 1 || got[UsageKey{Day: 10}] != 1 || got[UsageKey{Day: 10, Principal: "new"}] != 2 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// BenchmarkFairGrant: what a grant costs does not grow with the number of waiters, only with that of the principals that wait.
func BenchmarkFairGrant(b *testing.B) {
	for _, waiters := range []int{100, 10_000} {
		b.Run(fmt.Sprint(waiters, "-waiters"), func(b *testing.B) {
			c := smallConfig(1, 1)
			c.Pool = Pool{MaxQueue: waiters + 10, Fair: true}
			m := New()
			index := uint64(0)
			apply := func(session SessionID, cs ...Command) Result {
				index++
				return m.Apply(&Entry{Index: index, Term: 1, Batches: []Batch{{Session: session, Seq: 1, Commands: cs}}})
			}
			apply(0, &ApplyConfig{Config: c}, &OpenSession{Edge: "e1", Nonce: 1})
			s, _ := m.CurrentSession("e1")
			seq := uint64(0)
			do := func(cs ...Command) Result {
				index, seq = index+1, seq+1
				return m.Apply(&Entry{Index: index, Term: 1, Batches: []Batch{{Session: s, Seq: seq, AckBelow: seq, Commands: cs}}})
			}
			do(&RegisterNode{Node: "n1", Instance: 1}, &NodeReady{Node: "n1", Generation: 1})
			n := 0
			admit := func() Command {
				n++
				return &Admit{Request: RequestID(fmt.Sprint("r", n)), Model: "o", Principal: PrincipalID(fmt.Sprint("p", n%10))}
			}
			for range waiters + 1 {
				do(admit())
			}
			b.ResetTimer()
			for b.Loop() {
				do(&Release{Lease: m.NextLease() - 1, Reason: ReasonDone}, admit())
			}
		})
	}
}
