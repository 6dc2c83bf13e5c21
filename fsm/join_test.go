package fsm_test

import (
	"encoding/binary"
	"testing"

	. "iop/fsm"
)

// TestJoinTokensAreBounded: beyond JoinsMax nobody gets one, until the overdue ones are forgotten.
func TestJoinTokensAreBounded(t *testing.T) {
	p := beginning(t, smallConfig(1, 1))
	add := func(i int) Outcome {
		t.Helper()
		c := &AddJoin{Node: "n1", TTL: Second}
		binary.BigEndian.PutUint64(c.Token[:], uint64(i))
		e := &Entry{Index: p.n.index + 1, Term: 1, Elapsed: p.n.now, Batches: []Batch{{Commands: []Command{c}}}}
		res, err := p.step(e)
		if err != nil {
			t.Fatal(err)
		}
		return res.Outcomes[0][0]
	}
	for i := 1; i <= JoinsMax; i++ {
		if o := add(i); o.Code != Done {
			t.Fatalf("token %d: %v %v", i, o.Code, o.Refusal)
		}
	}
	if o := add(JoinsMax + 1); o.Refusal != RefusalTooMany {
		t.Fatalf("one more: %v %v", o.Code, o.Refusal)
	}
	if err := p.compare(); err != nil {
		t.Fatal(err)
	}
	restored(t, p.m)
	for range 3 { // ExpireMax at a time
		e := &Entry{Index: p.n.index + 1, Term: 1, Elapsed: p.n.now + Second + JoinTrace}
		e.Batches = []Batch{{Commands: []Command{&Expire{Term: 1}}}}
		p.m.Apply(e)
		p.n.index = e.Index
	}
	if left := len(p.m.Joins()); left != 0 {
		t.Fatalf("%d overdue tokens are kept", left)
	}
}
