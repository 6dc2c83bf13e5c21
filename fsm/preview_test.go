package fsm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "iop/fsm"
)

// previewWorld has p1 (capacity 2, one long slot) and p2 (disabled), both for the model m; 2 leases on p1, one of them
// long, and 3 waiters.
func previewWorld(t *testing.T) (*Machine, func() Config) {
	t.Helper()
	config := func() Config {
		p := func(id ProviderID) ProviderConfig {
			return ProviderConfig{ID: id, Node: "n", Capacity: 2, LongCapacity: 1, ContextWindow: 1000, Enabled: id == "p1", Can: AllNeeds}
		}
		return Config{
			Pool: Pool{MaxQueue: 10, FenceTimeout: Second}, Nodes: []NodeID{"n"}, Providers: []ProviderConfig{p("p1"), p("p2")},
			Models: []ModelConfig{{ID: "m", Candidates: []Candidate{{Provider: "p1", Served: "s"}, {Provider: "p2", Served: "s"}}}},
		}
	}
	m, seq := New(), uint64(0)
	var session SessionID
	do := func(c Command, want Code) Outcome {
		t.Helper()
		seq++
		b := Batch{Session: session, Commands: []Command{c}}
		if session != 0 {
			b.Seq = seq
		}
		o := m.Apply(&Entry{Index: m.Index() + 1, Term: 1, Elapsed: Time(m.Index()), Batches: []Batch{b}}).Outcomes[0][0]
		if o.Code != want {
			t.Fatalf("%T: %v %v", c, o.Code, o.Refusal)
		}
		return o
	}
	do(&ApplyConfig{Config: config()}, Applied)
	session = do(&OpenSession{Edge: "e", Nonce: 1}, SessionOpened).Session
	seq = 0
	do(&RegisterNode{Node: "n", Instance: 1}, Registered)
	do(&NodeReady{Node: "n", Generation: 1}, Done)
	do(&Admit{Request: "l1", Model: "m", Class: ClassLong, InputTokens: 900}, Granted)
	do(&Admit{Request: "l2", Model: "m"}, Granted)
	do(&Admit{Request: "w1", Model: "m", InputTokens: 10}, Queued)
	do(&Admit{Request: "w2", Model: "m", Class: ClassLong, InputTokens: 900}, Queued)
	do(&Admit{Request: "w3", Model: "m", InputTokens: 600}, Queued)
	return m, config
}

func TestPreview(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*Config)
		affected []string // waiter -loses +gains
		over     []string
	}{
		{"nothing", func(*Config) {}, nil, nil},
		{"priority and queue", func(c *Config) { c.Providers[0].Priority, c.Pool.MaxQueue = 3, 1 }, nil, nil},
		{"another served name", func(c *Config) { c.Models[0].Candidates[0].Served = "t" }, nil, nil},
		{"capacity below", func(c *Config) { c.Providers[0].Capacity = 1 }, nil, []string{"p1 2/1 1/1"}},
		{"capacity not below", func(c *Config) { c.Providers[0].Capacity = 2 }, nil, nil},
		{"unlimited", func(c *Config) { c.Providers[0].Capacity = 0 }, nil, nil},
		{"no long ones", func(c *Config) { c.Providers[0].LongCapacity = 0 }, []string{"w2 -[p1] +[]"}, []string{"p1 2/2 1/0"}},
		{"a smaller window", func(c *Config) { c.Providers[0].ContextWindow = 500 }, []string{"w2 -[p1] +[]", "w3 -[p1] +[]"}, nil},
		{"disabled", func(c *Config) { c.Providers[0].Enabled = false }, []string{"w1 -[p1] +[]", "w2 -[p1] +[]", "w3 -[p1] +[]"}, nil},
		{"the other enabled", func(c *Config) { c.Providers[1].Enabled = true }, []string{"w1 -[] +[p2]", "w2 -[] +[p2]", "w3 -[] +[p2]"}, nil},
		{"one for the other", func(c *Config) { c.Providers[0].Enabled, c.Providers[1].Enabled = false, true }, []string{"w1 -[p1] +[p2]", "w2 -[p1] +[p2]", "w3 -[p1] +[p2]"}, nil},
		{"model removed", func(c *Config) { c.Models = nil }, []string{"w1 -[p1] +[]", "w2 -[p1] +[]", "w3 -[p1] +[]"}, nil},
		{"candidate removed", func(c *Config) { c.Models[0].Candidates = c.Models[0].Candidates[1:] }, []string{"w1 -[p1] +[]", "w2 -[p1] +[]", "w3 -[p1] +[]"}, nil},
		{"disabled candidate removed", func(c *Config) { c.Models[0].Candidates = c.Models[0].Candidates[:1] }, nil, nil},
		{"order of candidates", func(c *Config) { slices.Reverse(c.Models[0].Candidates); slices.Reverse(c.Providers) }, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, config := previewWorld(t)
			next, before := config(), m.Digest()
			c.change(&next)
			v := m.Preview(&next, 10)
			var affected, over []string
			for _, w := range v.Waiters {
				affected = append(affected, fmt.Sprintf("%s -%v +%v", w.Request, w.Loses, w.Gains))
			}
			for _, o := range v.Over {
				over = append(over, fmt.Sprintf("%s %d/%d %d/%d", o.Provider, o.InFlight, o.Capacity, o.LongInFlight, o.LongCapacity))
			}
			if diff := cmp.Diff(c.affected, affected) + cmp.Diff(c.over, over); diff != "" || v.Affected != len(c.affected) {
				t.Errorf("%d affected (-want +got):\n%s", v.Affected, diff)
			}
			if m.Digest() != before {
				t.Error("the preview changed the machine")
			}
			if few := m.Preview(&next, 1); few.Affected != v.Affected || len(few.Waiters) > 1 {
				t.Errorf("with a limit of 1: %d affected, %d named", few.Affected, len(few.Waiters))
			}
		})
	}
}
