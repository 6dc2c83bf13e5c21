package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// TestSmoke is the profile in testdata/smoke: configuration checked, refreshed with a preview and for good, then 40
// requests at once over two model keys on three candidates with 10 slots in all, a CLI agent beside them. `make smoke`.
func TestSmoke(t *testing.T) {
	t.Parallel()
	s := newSmoke(t)
	s.refreshToTen()
	for _, path := range s.paths() {
		t.Run(strings.TrimPrefix(path, "/v1/"), func(t *testing.T) { s.fortyAtOnce(t, path) })
	}
}

// smoke is the profile's world.
type smoke struct {
	*world
	backends map[string]*backend.Backend // by provider
}

// smokeSlots are what the pool's candidates take after the refresh: 10 in all.
func smokeSlots() map[string]int { return map[string]int{"mac-mlx-vllm": 4, "gpu-1": 3, "gpu-2": 3} }

func (s *smoke) paths() []string { return []string{"/v1/chat/completions", "/v1/responses"} }

func newSmoke(t *testing.T) *smoke {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &smoke{backends: map[string]*backend.Backend{}}
	for id, slots := range smokeSlots() {
		s.backends[id] = newBackend(t, backend.Options{Limit: slots})
	}
	p := readProfile(t, "smoke", []string{"mac-codex-node", "gpu-node-1", "gpu-node-2"}, map[string]string{
		"BACKEND_1": s.backends["mac-mlx-vllm"].URL(), "BACKEND_2": s.backends["gpu-1"].URL(),
		"BACKEND_3": s.backends["gpu-2"].URL(), "AGENT": self,
	})
	s.world = newEmptyWorld(t, layout{profile: p})
	file := s.write("edge.yaml", p.file(s.dataDir()))
	s.iopctl(0, "config", "validate", file)
	s.startEdge()
	for _, n := range p.nodes {
		s.startNode(n)
	}
	for _, n := range p.nodes {
		s.awaitLink(n)
	}
	return s
}

// refreshToTen raises gpu-2 from 2 slots to 3: first as a preview, which changes nothing, then for good.
func (s *smoke) refreshToTen() {
	s.t.Helper()
	bigger := *s.layout.profile
	bigger.text = strings.Replace(bigger.text, "capacity: 2", "capacity: 3", 1)
	file := s.write("bigger.yaml", bigger.file(s.dataDir()))
	before := s.status().Revision
	out, _ := s.iopctlBoth(0, "refresh", "--dry-run", "-f", file, "-o", "json")
	preview := parseReport(s.t, []byte(out))
	preview.wantPath("nodes[gpu-node-2].providers[gpu-2].capacity", "live", 2, 3)
	if preview.Result != "dry_run" || s.status().Revision != before || s.slots() != 9 {
		s.t.Fatalf("the preview %q left revision %d (was %d), %d slots", preview.Result, s.status().Revision, before, s.slots())
	}
	out, _ = s.iopctlBoth(0, "refresh", "-f", file, "-o", "json")
	if r := parseReport(s.t, []byte(out)); r.Result != "applied" || s.slots() != 10 {
		s.t.Fatalf("the refresh %q gave %d slots", r.Result, s.slots())
	}
}

// slots sums up what the pool's candidates take at the same time.
func (s *smoke) slots() (sum int) {
	for id := range s.backends {
		if c := s.provider(id).Capacity; c != nil {
			sum += *c
		}
	}
	return sum
}

// fortyAtOnce sends 40 requests: 10 run, 30 wait, while the agent answers beside them.
func (s *smoke) fortyAtOnce(t *testing.T, path string) {
	peaks := 0
	for _, b := range s.backends {
		b.HoldAgain()
		b.Set(backend.Plan{Hold: backend.BeforeHead})
	}
	var flights []*flight
	for i := range 40 {
		flights = append(flights, s.start(ask{
			path: path, model: []string{"ornith:35b", "ornith-fast"}[i%2], tag: fmt.Sprint("pool-", i), stream: i%4 < 2,
		}))
	}
	s.awaitPending(30)
	for id, slots := range smokeSlots() {
		if n := s.provider(id).InFlight; n != slots {
			t.Errorf("provider %s runs %d requests, want its %d slots", id, n, slots)
		}
	}
	var agents []*flight
	for i := range 5 {
		agents = append(agents, s.start(ask{path: path, model: "codex", tag: fmt.Sprint("agent-", i), stream: i%2 == 1}))
	}
	for _, f := range agents {
		a := f.wait(t)
		a.want(t, 200)
		if !strings.Contains(a.text(), "read ") {
			t.Errorf("%s: the agent said %q", a.tag, a.text())
		}
	}
	if n := s.pending(); n != 30 {
		t.Errorf("%d requests are pending after the agent's runs, want 30", n)
	}
	for _, b := range s.backends {
		b.Set(backend.Plan{})
		b.LetAll()
	}
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	for id, slots := range smokeSlots() {
		st := s.backends[id].Stats()
		if st.Peak > slots || st.Violations > 0 {
			t.Errorf("backend of %s: %d at the same time, %d beyond its %d slots", id, st.Peak, st.Violations, slots)
		}
		peaks += st.Peak
	}
	if peaks != 10 {
		t.Errorf("at most %d requests ran at the same time, want all 10 slots in use", peaks)
	}
	s.awaitIdle()
}
