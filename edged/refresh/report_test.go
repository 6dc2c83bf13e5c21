package refresh

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

// example is the documented file, loaded anew, with changes.
func example(t *testing.T, change func(e *configs.Edge)) *configs.Edge {
	t.Helper()
	e, _, err := configs.LoadEdge("../../configs/examples/edge.yaml", func(string) (string, bool) { return "raw-secret", true })
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(e)
	}
	return e
}

func judge(t *testing.T, liveOnly bool, change func(e *configs.Edge)) Proposal {
	t.Helper()
	running := example(t, nil)
	return Judge(Running{Revision: 7, Cluster: &running.Cluster, Self: &running.Edge}, example(t, change), liveOnly)
}

func paths(r *adminapi.RefreshReport) []string {
	out := []string{}
	for _, c := range r.ChangedPaths {
		out = append(out, c.Path+" "+string(c.Old)+" "+string(c.New)+" "+c.Class)
	}
	return out
}

func TestJudge(t *testing.T) {
	capacity := func(e *configs.Edge) { e.Nodes[0].Providers[0].Capacity = 9 }
	p := example(t, nil).Nodes[0].Providers[0]
	alias := func(e *configs.Edge) { e.Nodes[0].Alias = "other" }
	for _, c := range []struct {
		name     string
		liveOnly bool
		change   func(e *configs.Edge)
		result   string
		target   bool
		complete bool
		paths    []string
	}{
		{"nothing", false, nil, "no_change", false, true, []string{}},
		{"live", false, capacity, "dry_run", true, true, []string{"nodes[mac-codex-node].providers[" + p.ID + "].capacity 4 9 live"}},
		{"structural", false, alias, "restart_required", false, false, []string{`nodes[mac-codex-node].alias "Mac Studio" "other" restart_required`}},
		{"structural, live only", true, alias, "no_change", false, false, []string{`nodes[mac-codex-node].alias "Mac Studio" "other" restart_required`}},
		{"own part", false, func(e *configs.Edge) { e.Edge.Listen.OpenAI = ":1" }, "restart_required", false, true, []string{`edge.listen.openai ":8080" ":1" restart_required`}},
		{"both, live only", true, func(e *configs.Edge) { alias(e); capacity(e) }, "dry_run", true, false, []string{
			`nodes[mac-codex-node].alias "Mac Studio" "other" restart_required`, "nodes[mac-codex-node].providers[" + p.ID + "].capacity 4 9 live",
		}},
		{"order", false, func(e *configs.Edge) {
			slices.Reverse(e.Models)
			slices.Reverse(e.Nodes)
			slices.Reverse(e.Nodes[1].Providers)
		}, "no_change", false, true, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(t, c.liveOnly, c.change)
			if got.Report.Result != c.result || (got.Target != nil) != c.target || got.Complete != c.complete || got.Report.Revision != 7 {
				t.Errorf("result %s, target %v, complete %v", got.Report.Result, got.Target != nil, got.Complete)
			}
			if diff := cmp.Diff(c.paths, paths(got.Report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// With the live part alone, a model may name a provider that only the restart brings.
func TestTheLivePartAloneIsChecked(t *testing.T) {
	p := judge(t, true, func(e *configs.Edge) {
		n := &e.Nodes[0]
		added := n.Providers[0]
		added.ID = "p-new"
		n.Providers = append(n.Providers, added)
		for m := range e.Models {
			if _, ok := e.Models[m].Providers[n.Providers[0].ID]; ok {
				e.Models[m].Providers = map[string]string{"p-new": added.Models[0]}
			}
		}
	})
	if p.Target != nil || p.Report.Result != "invalid" || len(p.Report.Problems) == 0 || !strings.Contains(p.Report.Problems[0].Cause, "p-new") {
		t.Errorf("%s, %+v", p.Report.Result, p.Report.Problems)
	}
}

func TestReportNamesWhatChangedOnce(t *testing.T) {
	r := judge(t, false, func(e *configs.Edge) {
		e.Nodes[0].Providers[0].Capacity, e.Nodes[0].Providers[0].Priority = 9, 9
		e.Nodes[1].ID = "gpu-new"
		e.Models[0].Providers, e.Models[0].Generation.TopK = map[string]string{}, new(int64)
	}).Report
	first := example(t, nil)
	if diff := cmp.Diff([]string{"gpu-new", "gpu-node", "mac-codex-node"}, r.ChangedNodes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gpu-1", first.Nodes[0].Providers[0].ID}, r.ChangedProviders); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{first.Models[0].ID}, r.ChangedModels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"nodes[gpu-new]", "nodes[gpu-node]"}, r.RestartRequiredPaths); diff != "" {
		t.Error(diff)
	}
}

func TestNoListOfAReportIsNull(t *testing.T) {
	text, err := json.Marshal(NewReport())
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s %v", text, err)
	}
	r := NewReport()
	Touch(r, fsm.Preview{Affected: 1, Waiters: []fsm.WaiterChange{{Request: "r"}}, Over: []fsm.OverCapacity{{Provider: "p", Capacity: 1, InFlight: 2, LongCapacity: fsm.LongUncounted}}})
	text, err = json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"gains":[],"loses":[]`) || !strings.Contains(string(text), `"capacity":1,"long_in_flight":0,"long_capacity":null`) {
		t.Errorf("%s %v", text, err)
	}
}

// Whatever changes, comes or goes: no secret and no whole hash is in the report.
func TestSecretsAreFingerprints(t *testing.T) {
	hash := configs.HashToken("raw-secret")
	r := judge(t, false, func(e *configs.Edge) {
		e.Edge.Admin.Token, e.Edge.ControlPlane.Token = "raw-secret", "raw-secret-2"
		e.Nodes[0].TokenHashSHA256 = hash
		added := e.Nodes[1]
		added.ID, added.TokenHashSHA256 = "n-new", hash
		e.Nodes = append(e.Nodes, added)
		e.OpenAI.PrincipalTokens = append(e.OpenAI.PrincipalTokens, configs.PrincipalToken{TokenRef: "t-new", TokenHashSHA256: hash})
		e.OpenAI.PrincipalTokens[0].TokenHashSHA256 = hash
	}).Report
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "raw-secret") || strings.Contains(string(text), hash) || strings.Contains(string(text), example(t, nil).Nodes[0].TokenHashSHA256) {
		t.Errorf("%s %v", text, err)
	}
	if n := strings.Count(string(text), "sha256:"+hash[:8]); n < 4 {
		t.Errorf("%d fingerprints in %s", n, text)
	}
}

func TestPathsQuoteWhatWouldBeMisread(t *testing.T) {
	r := judge(t, false, func(e *configs.Edge) {
		e.Models = append(e.Models, configs.Model{ID: "a b]"})
		e.Models[0].Providers = map[string]string{"gpu.1": "x"}
	}).Report
	text := strings.Join(paths(r), "\n")
	if !strings.Contains(text, `models["a b]"] `) || !strings.Contains(text, `.providers["gpu.1"] `) {
		t.Error(text)
	}
}

// Models come and go; nodes, providers and adapters stay as they are until a restart.
func TestLivePartOfWhatComesAndGoes(t *testing.T) {
	running, candidate := example(t, nil), example(t, func(e *configs.Edge) {
		added := e.Nodes[0]
		added.ID = "n-new"
		e.Nodes = []configs.CatalogNode{e.Nodes[1], added} // Nodes[0] goes
		e.Nodes[0].Providers = nil
		e.Models = append(e.Models[1:], configs.Model{ID: "m-new", Providers: map[string]string{}})
		e.OpenAI.PrincipalTokens = nil
	})
	got := LivePart(&running.Cluster, &candidate.Cluster)
	names := func(c *configs.Cluster) (nodes, models, providers []string) {
		for _, n := range c.Nodes {
			nodes = append(nodes, n.ID)
			for _, p := range n.Providers {
				providers = append(providers, p.ID)
			}
		}
		for _, m := range c.Models {
			models = append(models, m.ID)
		}
		slices.Sort(nodes)
		slices.Sort(providers)
		slices.Sort(models)
		return nodes, models, providers
	}
	wantNodes, _, wantProviders := names(&running.Cluster)
	_, wantModels, _ := names(&candidate.Cluster)
	nodes, models, providers := names(got)
	if diff := cmp.Diff(wantNodes, nodes) + cmp.Diff(wantModels, models) + cmp.Diff(wantProviders, providers); diff != "" {
		t.Error(diff)
	}
	if len(got.OpenAI.PrincipalTokens) != len(running.OpenAI.PrincipalTokens) {
		t.Error("the principals went over")
	}
	before := running.Canonical()
	got.Nodes[0].Alias, got.Models[0].ID = "changed", "changed"
	if string(running.Canonical()) != string(before) {
		t.Error("the live part shares its entries with what runs")
	}
}
