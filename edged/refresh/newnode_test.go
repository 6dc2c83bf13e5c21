package refresh

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/configs"
)

// A node that is new is taken while all runs; one that takes over a provider, changes or goes is not.
func TestANewNodeIsLive(t *testing.T) {
	added := configs.CatalogNode{
		ID: "n-new", Adapters: []configs.Adapter{{ID: "a", Type: configs.AdapterDemo}},
		Providers: []configs.Provider{{ID: "p-new", Type: configs.ProviderDemo, Adapter: "a", Models: []string{"m"}, Capacity: 1, Enabled: true}},
	}
	p := judge(t, false, func(e *configs.Edge) {
		e.Nodes = append(e.Nodes, added)
		e.Models = append(e.Models, configs.Model{ID: "m-new", Providers: map[string]string{"p-new": "m"}})
	})
	if p.Target == nil || !p.Complete || len(p.Report.RestartRequiredPaths) > 0 {
		t.Fatalf("%+v", p.Report)
	}
	if diff := cmp.Diff([]string{"p-new"}, p.Report.ChangedProviders); diff != "" {
		t.Error(diff)
	}
	p = judge(t, true, func(e *configs.Edge) {
		e.Nodes[0].Alias = "other"
		e.Nodes = append(e.Nodes, added)
	})
	if p.Target == nil || p.Target.Nodes[0].Alias == "other" || !slices.ContainsFunc(p.Target.Nodes, func(n configs.CatalogNode) bool { return n.ID == "n-new" }) {
		t.Errorf("the live part: %+v", p.Report)
	}
	p = judge(t, false, func(e *configs.Edge) {
		moved := e.Nodes[0]
		moved.ID = "n-new"
		e.Nodes = append(e.Nodes[1:], moved)
	})
	if p.Target != nil {
		t.Errorf("a node that takes over providers of another: %+v", p.Report)
	}
}
