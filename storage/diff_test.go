package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/fsm"
)

// TestDifferenceNamesOnlyWhatChanged: each field of a provider's configuration shows if it changed, and only then.
func TestDifferenceNamesOnlyWhatChanged(t *testing.T) {
	was := fsm.ProviderRow{Config: fsm.ProviderConfig{ID: "p", Node: "n", Capacity: 4, LongCapacity: 1, Enabled: true}}
	for _, c := range []struct {
		change func(*fsm.ProviderConfig)
		want   string
	}{
		{func(p *fsm.ProviderConfig) { p.Capacity = 2 }, "capacity 4 → 2"},
		{func(p *fsm.ProviderConfig) { p.Capacity, p.Enabled = 6, false }, "capacity 4 → 6, enabled true → false"},
		{func(p *fsm.ProviderConfig) { p.Node = "m" }, "node n → m"},
		{func(p *fsm.ProviderConfig) { p.LongCapacity = fsm.LongUncounted }, "long capacity 1 → -1"},
		{func(p *fsm.ProviderConfig) { p.ContextWindow = 8192 }, "context window 0 → 8192"},
		{func(p *fsm.ProviderConfig) { p.Priority = 3 }, "priority 0 → 3"},
		{func(p *fsm.ProviderConfig) { p.Can = ^p.Can }, "what it can do"},
	} {
		is := was
		c.change(&is.Config)
		var d difference
		d.provider(&was, &is)
		if diff := cmp.Diff([]string{"provider p: configuration changed: " + c.want}, d.lines); diff != "" {
			t.Error(diff)
		}
	}
}
