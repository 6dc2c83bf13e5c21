package fsm_test

import (
	"testing"

	. "iop/fsm"
)

// TestSessionIDsNeverRepeat: an entry that opens two sessions must not use up the number of the next entry, or a late
// batch of an ended session would be taken for one of its successor.
func TestSessionIDsNeverRepeat(t *testing.T) {
	m := New()
	seen := map[SessionID]bool{}
	open := func(index uint64, cmds ...Command) {
		for _, o := range m.Apply(&Entry{Index: index, Batches: []Batch{{Commands: cmds}}}).Outcomes[0] {
			if o.Code != SessionOpened || seen[o.Session] {
				t.Fatalf("entry %d: %v %d, seen before: %v", index, o.Code, o.Session, seen[o.Session])
			}
			seen[o.Session] = true
		}
	}
	open(5, &OpenSession{Edge: "e1", Nonce: 1}, &OpenSession{Edge: "e2", Nonce: 1})
	open(6, &OpenSession{Edge: "e2", Nonce: 2})
	restored, err := Restore(m.Image())
	if err != nil {
		t.Fatal(err)
	}
	m = restored
	open(7, &OpenSession{Edge: "e2", Nonce: 3})
}
