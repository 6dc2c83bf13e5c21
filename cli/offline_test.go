package cli_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"iop/cli"
	"iop/edged/adminapi"
	"iop/fsm"
	"iop/storage"
)

// stopped makes the data directory of a replica that was stopped while "r-1" held a slot and "r-2" waited.
func stopped(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/edge-1"
	s, err := storage.Open(t.Context(), storage.Options{Dir: dir, Replica: "edge-1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = s.Do(t.Context(), &fsm.ApplyConfig{Force: true, Config: fsm.Config{
		Nodes:     []fsm.NodeID{"n1"},
		Models:    []fsm.ModelConfig{{ID: "m", Candidates: []fsm.Candidate{{Provider: "p1", Served: "served-m"}}}},
		Providers: []fsm.ProviderConfig{{ID: "p1", Node: "n1", Capacity: 1, LongCapacity: fsm.LongUncounted, Enabled: true, Can: fsm.AllNeeds}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.OpenSession(t.Context(), "edge-1", func([]fsm.Effect) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command fsm.Command
		want    fsm.Code
	}{
		{&fsm.RegisterNode{Node: "n1", Instance: 1}, fsm.Registered},
		{&fsm.NodeReady{Node: "n1", Generation: 1}, fsm.Done},
		{&fsm.Admit{Request: "r-1", Model: "m", InputTokens: 5, Needs: fsm.NeedChat}, fsm.Granted},
		{&fsm.Admit{Request: "r-2", Model: "m", Needs: fsm.NeedChat}, fsm.Queued},
	} {
		if o, err := x.Do(t.Context(), c.command); err != nil || o.Code != c.want {
			t.Fatalf("%T: %v %v, %v", c.command, o.Code, o.Refusal, err)
		}
	}
	return dir
}

func run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Run(t.Context(), cli.Deps{}, args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestLeasesOfAStoppedReplica(t *testing.T) {
	dir := stopped(t)
	code, list, errs := run(t, "leases", "list", "--data-dir", dir)
	if code != 0 || !strings.Contains(list, "r-1") || !strings.Contains(list, "p1") || strings.Contains(list, "r-2") {
		t.Errorf("code %d\n%s%s", code, list, errs)
	}
	for _, id := range []string{"1", "r-1"} {
		code, out, errs := run(t, "leases", "inspect", id, "--data-dir", dir, "-o", "json")
		if code != 0 {
			t.Fatalf("%s: code %d: %s", id, code, errs)
		}
		var l adminapi.LeaseDetail
		if err := json.Unmarshal([]byte(out), &l); err != nil {
			t.Fatal(err)
		}
		if l.ID != 1 || l.Request != "r-1" || l.Model != "m" || l.Served != "served-m" || l.Provider != "p1" || l.Node != "n1" ||
			l.Edge != "edge-1" || l.Session == 0 || l.Generation != 1 || l.GrantedIndex == 0 || l.State != "held" || l.InputTokens != 5 ||
			l.GrantedAt.Year() < 2020 || l.Excluded == nil {
			t.Errorf("%s", out)
		}
		if got, want := keys(t, out), keys(t, read(t, "lease")); !slices.Equal(got, want) {
			t.Errorf("keys offline %v, of the edge %v", got, want)
		}
	}
	for _, id := range []string{"2", "r-2", "r-3"} {
		code, _, errs := run(t, "leases", "inspect", id, "--data-dir", dir)
		if code != cli.ExitFailure || !strings.Contains(errs, id) || !strings.Contains(errs, "cure:") {
			t.Errorf("%s: code %d: %s", id, code, errs)
		}
	}
}

func keys(t *testing.T, text string) []string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

func TestNoReplicaThere(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := run(t, "leases", "inspect", "1", "--data-dir", dir)
	if code != cli.ExitFailure || !strings.Contains(errs, dir) {
		t.Errorf("code %d: %s", code, errs)
	}
}
