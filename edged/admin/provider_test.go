package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"iop/configs"
	"iop/edged/admin"
	"iop/edged/adminapi"
	"iop/fsm"
)

// A provider of a named gateway keeps its type and the operator's label, though its adapter counts as openai_compat.
func TestAProviderKeepsItsLabel(t *testing.T) {
	e, _, err := configs.ParseEdge([]byte(`
edge: {id: edge-1, data_dir: ./data}
nodes:
  - id: studio
    token_hash_sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
    adapters: [{id: a, type: seulgivibe_claude, base_url: "http://127.0.0.1:8000/v1"}]
    providers:
      - {id: named, type: seulgivibe_claude, label: claude-at-home, adapter: a, models: [x, y], capacity: 1, health_check: {interval_ms: 700}}
      - {id: plain, type: seulgivibe_claude, adapter: a, models: [x], capacity: 1, health_check: {path: /ok}}
`), "edge.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	provider := func(id fsm.ProviderID) fsm.ProviderConfig {
		return fsm.ProviderConfig{ID: id, Node: "studio", Capacity: 1, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds}
	}
	w.do(0, &fsm.ApplyConfig{Document: e.Canonical(), Config: fsm.Config{
		Pool: fsm.Pool{MaxQueue: 16}, Nodes: []fsm.NodeID{"studio"}, Providers: []fsm.ProviderConfig{provider("named"), provider("plain")},
	}})
	s := serve(t, w, func(o *admin.Options) { o.Backend = nil })
	show := func(id string) (d adminapi.ProviderDetail) {
		if err := json.Unmarshal(get(t, s, "/providers/"+id, http.StatusOK), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	named := show("named")
	if named.Type != "seulgivibe_claude" || named.Label != "claude-at-home" || named.AdapterType != "openai_compat" || named.Adapter != "a" ||
		strings.Join(named.Models, " ") != "x y" || named.HealthPath != "" || named.HealthEvery != 700 || named.Backend.Error == "" {
		t.Errorf("%+v", named)
	}
	if plain := show("plain"); plain.Label != "" || plain.HealthPath != "/ok" || plain.HealthEvery != 5000 {
		t.Errorf("%+v", plain)
	}
	var list adminapi.ProviderList
	if err := json.Unmarshal(get(t, s, "/providers", http.StatusOK), &list); err != nil || list.Providers[0].Label != "claude-at-home" {
		t.Errorf("%+v, %v", list, err)
	}
}
