package fsm_test

import (
	"testing"

	. "iop/fsm"
)

// Fault: a provider whose node is offline, or above a lowered capacity, is counted as if it held nothing.
func TestFiguresCountWhatIsOffline(t *testing.T) {
	m, config := previewWorld(t)
	want := Figures{Leases: 2, Waiter: 3, BytesMax: ResponsesBytes}
	if f := m.Figures(); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	c := config()
	c.Providers[0].Capacity, c.Providers[0].LongCapacity = 1, 0
	at := func(session SessionID, seq uint64, x Command) {
		t.Helper()
		b := Batch{Session: session, Seq: seq, Commands: []Command{x}}
		if o := m.Apply(&Entry{Index: m.Index() + 1, Term: 1, Elapsed: m.Now(), Batches: []Batch{b}}).Outcomes[0][0]; o.Code == Refused {
			t.Fatalf("%T: %v", x, o.Refusal)
		}
	}
	at(0, 0, &ApplyConfig{Config: c, Expected: m.Revision()})
	if f := m.Figures(); f.OverCapacity != 1 || f.Leases != 2 {
		t.Errorf("after the capacity was lowered: %+v", f)
	}
	session, _ := m.CurrentSession("e")
	at(0, 0, &OpenSession{Edge: "e2", Nonce: 2})
	second, _ := m.CurrentSession("e2")
	at(second, 1, &RegisterNode{Node: "n", Instance: 1}) // while the node has another link, what ran over the first may go on
	at(session, 8, &LinkLost{Node: "n", Generation: 1})
	if f := m.Figures(); f.Leases != 2 || f.Fencing != 2 || f.OverCapacity != 1 {
		t.Errorf("after the link was lost: %+v", f)
	}
}
