package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// structure are changes that need a restart: the edit of the file, and the path that the report names.
func structure() map[string]struct {
	value any
	path  string
} {
	type change = struct {
		value any
		path  string
	}
	return map[string]change{
		"edge.id":                          {"edge-9", "edge.id"},
		"edge.data_dir":                    {"./elsewhere", "edge.data_dir"},
		"edge.listen.openai":               {"127.0.0.1:18080", "edge.listen.openai"},
		"edge.listen.node":                 {"127.0.0.1:17443", "edge.listen.node"},
		"edge.listen.admin":                {"127.0.0.1:19080", "edge.listen.admin"},
		"edge.listen.cluster":              {"127.0.0.1:17400", "edge.listen.cluster"},
		"edge.listen.a2a":                  {"127.0.0.1:17500", "edge.listen.a2a"},
		"edge.advertise.node":              {"gateway:7443", "edge.advertise.node"},
		"edge.tls":                         {map[string]any{"cert": "cert.pem", "key": "key.pem"}, "edge.tls.cert"},
		"edge.cluster.session_ttl_ms":      {4000, "edge.cluster.session_ttl_ms"},
		"edge.bootstrap.artifact_dir":      {"./installers", "edge.bootstrap.artifact_dir"},
		"edge.control_plane.address":       {"plane:9000", "edge.control_plane.address"},
		"edge.link.heartbeat_ms":           {700, "edge.link.heartbeat_ms"},
		"nodes[0].alias":                   {"another name", "nodes[n1].alias"},
		"nodes[0].adapters[0].base_url":    {"http://127.0.0.1:1/v1", "nodes[n1].adapters[a-p1].base_url"},
		"nodes[0].adapters[2]":             {map[string]any{"id": "a-new", "type": "demo"}, "nodes[n1].adapters[a-new]"},
		"nodes[0].providers[0].type":       {"vllm", "nodes[n1].providers[p1].type"},
		"nodes[0].providers[0].adapter":    {"a-side", "nodes[n1].providers[p1].adapter"},
		"openai.principal_tokens[0]":       {map[string]any{"token_ref": "app", "token_hash_sha256": sha("key"), "principal_ref": "team"}, "openai.principal_tokens[app]"},
		"nodes[1].adapters[0].api_key_env": {"SOME_KEY", "nodes[n2].adapters[a-p2].api_key_env"},
	}
}

// named tells whether a list of paths has a path or one below it.
func named(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")
	})
}

// TestRefreshRestartRequiredAppliesNothing: each structural change alone, and all of them together with live ones: 409,
// exit code 3, every such path is named, and nothing at all has changed.
func TestRefreshRestartRequiredAppliesNothing(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Default: hold}), newBackend(t, backend.Options{Default: hold})
	w, side := newBusyWorld(t, pair(b1, b2, 1), "n1")
	flights := []*flight{w.start(ask{tag: "running", model: "only1"})}
	await(t, "one runs", func() bool { return b1.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "waiting", model: "only1"}, 1))
	revision := w.status().Revision
	changes := structure()
	all := map[string]any{}
	for _, edit := range slices.Sorted(maps.Keys(changes)) {
		c := changes[edit]
		all[edit] = c.value
		r := w.refresh(409, "restart_required", "", func(l *layout) { l.edits[edit] = c.value })
		if !named(r.RestartRequiredPaths, c.path) {
			t.Errorf("%s: restart_required_paths %q, want %s", edit, r.RestartRequiredPaths, c.path)
		}
		if r.Revision != revision || len(r.PushedNodes) != 0 {
			t.Errorf("%s: %s", edit, r.raw)
		}
	}
	together := func(l *layout) {
		everythingLive(l)
		maps.Copy(l.edits, all)
	}
	r := w.refresh(409, "restart_required", "", together)
	byCLI, said := w.refreshBy(3, together)
	dry, _ := w.refreshBy(3, together, "--dry-run")
	for _, x := range []refreshReport{r, byCLI, dry} {
		for edit, c := range changes {
			if !named(x.RestartRequiredPaths, c.path) {
				t.Errorf("all together: %s is not among %q", edit, x.RestartRequiredPaths)
			}
		}
		x.wantPath("nodes[n1].providers[p1].capacity", "live", 1, 3)
		if named(x.RestartRequiredPaths, "nodes[n1].providers[p1].capacity") {
			t.Error("the capacity is said to need a restart")
		}
		if strings.Contains(x.raw, sha("another")) || strings.Contains(x.raw, sha(nodeToken("n1"))) {
			t.Errorf("a hash of a token is shown whole: %s", x.raw)
		}
	}
	wantWords(t, "stderr", said, "restart", "--live-only")
	l := w.with(together)
	table := w.iopctl(3, "refresh", "-f", w.write("candidate.yaml", w.file(&l)))
	for _, c := range changes {
		wantWords(t, "the table", table, c.path)
	}
	if got := w.status(); got.Revision != revision || got.Queue.Max != 64 || got.Queue.Pending != 1 {
		t.Errorf("something was applied: %+v", got)
	}
	if p := w.provider("p1"); *p.Capacity != 1 || b1.Stats().Total != 1 {
		t.Errorf("something was applied: %+v", p)
	}
	b1.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// everythingLive changes a bit of everything that needs no restart.
func everythingLive(l *layout) {
	l.providers[0].capacity, l.queue = 3, 9
	l.models["new"] = []string{"p1"}
}

// TestRefreshLiveOnly applies the rest and lists what it left; the structure stays as it was, in the document too.
func TestRefreshLiveOnly(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Limit: 3, Default: hold}), newBackend(t, backend.Options{Default: hold})
	w, side := newBusyWorld(t, pair(b1, b2, 1), "n1")
	flights := []*flight{w.start(ask{tag: "running", model: "only1"})}
	await(t, "one runs", func() bool { return b1.Stats().Held == 1 })
	for i := range 3 {
		flights = append(flights, w.queue(ask{tag: fmt.Sprint("waiting", i), model: "only1"}, i+1))
	}
	revision := w.status().Revision
	changes := structure()
	mixed := func(l *layout) {
		everythingLive(l)
		for edit, c := range changes {
			l.edits[edit] = c.value
		}
	}
	dry := w.refresh(200, "dry_run", "?dry_run=true&live_only=true", mixed)
	r, _ := w.refreshBy(0, mixed, "--live-only")
	for _, x := range []refreshReport{dry, r} {
		for edit, c := range changes {
			if !named(x.RestartRequiredPaths, c.path) {
				t.Errorf("%s was left and is not among %q", edit, x.RestartRequiredPaths)
			}
		}
		x.wantPath("nodes[n1].providers[p1].capacity", "live", 1, 3)
	}
	if r.Result != "applied" || r.Revision != revision+1 || !slices.Equal(r.PushedNodes, []string{"n1", "n2"}) {
		t.Errorf("report %s", r.raw)
	}
	await(t, "three run", func() bool { return b1.Stats().Held == 3 })
	if q := w.status().Queue; q.Max != 9 || q.Pending != 1 {
		t.Errorf("queue %+v", q)
	}
	flights = append(flights, w.start(ask{tag: "new", model: "new"}))
	w.awaitPending(2)
	for _, n := range fact[nodeIDs](w, "/nodes").Nodes {
		if n.ID == "n9" || n.Alias != "" {
			t.Errorf("the structure was touched: %+v", n)
		}
	}
	again := w.refresh(409, "restart_required", "", mixed)
	for _, p := range again.ChangedPaths {
		if p.Class != "restart_required" {
			t.Errorf("%s is still to be applied", p.Path)
		}
	}
	if again = w.refresh(200, "no_change", "?live_only=true", mixed); again.Revision != revision+1 || len(again.PushedNodes) != 0 {
		t.Errorf("once more: %s", again.raw)
	}
	b1.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

type nodeIDs struct{ Nodes []struct{ ID, Alias string } }
