package fsm

import "testing"

// Who watches sees which command brought the grant of a waiter about, and that a repeated batch changes nothing; the
// state is that of Apply.
func TestApplyWatched(t *testing.T) {
	watched, plain := New(), New()
	config := Config{
		Pool:      Pool{MaxQueue: 4},
		Nodes:     []NodeID{"n"},
		Providers: []ProviderConfig{{ID: "p", Node: "n", Capacity: 1, LongCapacity: LongUncounted, Enabled: true, Can: AllNeeds}},
		Models:    []ModelConfig{{ID: "m", Candidates: []Candidate{{Provider: "p", Served: "s"}}}},
	}
	second := Batch{Session: 2, Seq: 2, Sum: 2, Commands: []Command{
		&Admit{Request: "b", Model: "m"}, &Cancel{Request: "x"}, &Release{Lease: 1},
	}}
	entries := []Entry{
		{Index: 1, Batches: []Batch{{Commands: []Command{&ApplyConfig{Config: config, Force: true}}}}},
		{Index: 2, Batches: []Batch{{Commands: []Command{&OpenSession{Edge: "e", Nonce: 1}}}}},
		{Index: 3, Batches: []Batch{{Session: 2, Seq: 1, Sum: 1, Commands: []Command{
			&RegisterNode{Node: "n", Instance: 1}, &NodeReady{Node: "n", Generation: 1}, &Admit{Request: "a", Model: "m"},
		}}}},
		{Index: 4, Batches: []Batch{second}},
		{Index: 5, Batches: []Batch{second}},
	}
	granting, idle := -1, 0
	for i := range entries {
		e := &entries[i]
		plain.Apply(e)
		watched.ApplyWatched(e, func(s Step) {
			if s.Idle {
				idle++
			}
			for _, f := range s.Effects {
				if f.Kind == EffectGranted && f.Request == "b" && e.Index == 4 {
					granting = s.Command
				}
			}
			if err := watched.Check(); err != nil {
				t.Errorf("entry %d, command %d: %v", e.Index, s.Command, err)
			}
		})
	}
	if granting != 2 || idle != 3 {
		t.Errorf("the grant came with command %d (want 2), %d commands were idle (want 3)", granting, idle)
	}
	if watched.Digest() != plain.Digest() {
		t.Error("watching changed the state")
	}
}
