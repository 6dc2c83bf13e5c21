package refresh

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/configs"
	"iop/fsm"
)

func TestPlanOfTheExample(t *testing.T) {
	e, _, err := configs.LoadEdge("../../configs/examples/edge.yaml", func(string) (string, bool) { return "x", true })
	if err != nil {
		t.Fatal(err)
	}
	want := fsm.Config{
		Pool: fsm.Pool{
			MaxQueue: 16, QueueTimeout: 30 * fsm.Second, StartupGrace: 5 * fsm.Second, ReattachWindow: 15 * fsm.Second,
			FenceTimeout: 10 * fsm.Second,
		},
		Models: []fsm.ModelConfig{
			{ID: "codex", Candidates: []fsm.Candidate{{Provider: "codex-cli", Served: "codex"}}},
			{ID: "ornith-fast", Candidates: []fsm.Candidate{{Provider: "gpu-1", Served: "ornith-35b-awq"}}},
			{ID: "ornith:35b", Candidates: []fsm.Candidate{
				{Provider: "gpu-1", Served: "ornith-35b-awq"}, {Provider: "mac-mlx-vllm", Served: "mlx/ornith-35b"},
			}},
		},
		Nodes: []fsm.NodeID{"gpu-node", "mac-codex-node"},
		Providers: []fsm.ProviderConfig{
			{ID: "codex-cli", Node: "mac-codex-node", Capacity: 0, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.NeedChat},
			{
				ID: "gpu-1", Node: "gpu-node", Capacity: 8, LongCapacity: fsm.LongUncounted, Priority: 20, Enabled: true,
				Can: fsm.AllNeeds | fsm.NeedMessages | fsm.NeedRerank | fsm.NeedScore | fsm.NeedTokenize,
			},
			{
				ID: "mac-mlx-vllm", Node: "mac-codex-node", Capacity: 4, LongCapacity: 1, ContextWindow: 131072, Priority: 10,
				Enabled: true, Can: fsm.AllNeeds | fsm.NeedMessages,
			},
		},
	}
	if diff := cmp.Diff(want, Plan(&e.Cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What absence means must arrive as the machine's value for it.
func TestPlanKeepsAbsentAndZeroApart(t *testing.T) {
	zero := 0
	c := configs.NewCluster()
	c.ProviderPool.QueueTimeoutMS = 0
	c.Nodes = []configs.CatalogNode{{
		ID: "n", Adapters: []configs.Adapter{{ID: "o", Type: configs.AdapterOllama}, {ID: "d", Type: configs.AdapterDemo}},
		Providers: []configs.Provider{
			{ID: "absent", Adapter: "o", Capacity: 1},
			{ID: "zero", Adapter: "d", Capacity: 1, LongContextCapacity: &zero},
		},
	}}
	got := Plan(c)
	if got.Pool.QueueTimeout != 0 {
		t.Errorf("no queue timeout became %d", got.Pool.QueueTimeout)
	}
	want := []fsm.ProviderConfig{
		{ID: "absent", Node: "n", Capacity: 1, LongCapacity: fsm.LongUncounted, Can: fsm.AllNeeds},
		{ID: "zero", Node: "n", Capacity: 1, LongCapacity: 0, Can: fsm.NeedChat | fsm.NeedCompletions | fsm.NeedEmbeddings},
	}
	if diff := cmp.Diff(want, got.Providers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The order in a file, of entries and of map keys, must not reach the machine.
func TestPlanDoesNotDependOnOrder(t *testing.T) {
	e, _, err := configs.LoadEdge("../../configs/examples/edge.yaml", func(string) (string, bool) { return "x", true })
	if err != nil {
		t.Fatal(err)
	}
	want := Plan(&e.Cluster)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(e.Models), func(i, j int) { e.Models[i], e.Models[j] = e.Models[j], e.Models[i] })
		random.Shuffle(len(e.Nodes), func(i, j int) { e.Nodes[i], e.Nodes[j] = e.Nodes[j], e.Nodes[i] })
		for k := range e.Nodes {
			p := e.Nodes[k].Providers
			random.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
		}
		if diff := cmp.Diff(want, Plan(&e.Cluster)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// A document that went through the machine must plan as the file did.
func TestPlanOfTheDocumentIsThatOfTheFile(t *testing.T) {
	e, _, err := configs.LoadEdge("../../configs/examples/demo-edge.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := configs.ParseCluster(e.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Plan(&e.Cluster), Plan(back)); diff != "" {
		t.Errorf("(-file +document):\n%s", diff)
	}
}
