package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// again restarts the edge with the world's file as it is on disk now, and waits for the nodes.
func (w *world) again() {
	w.t.Helper()
	w.edge.kill()
	p := w.spawnEdge(w.path("edge.yaml"))
	r := p.awaitReady(w.t)
	w.edge = &edge{process: p, openai: r["openai"], node: r["node"], admin: r["admin"]}
	w.line.Retarget(w.edge.node)
	for id, n := range w.nodes {
		if n.running() {
			await(w.t, id+" is back", func() bool { return w.link(id) != 0 })
		}
	}
}

// diff is what iopctl config diff says.
func (w *world) diff(args ...string) refreshReport {
	w.t.Helper()
	out, _ := w.iopctlBoth(0, append([]string{"config", "diff", "-o", "json"}, args...)...)
	return parseReport(w.t, []byte(out))
}

// TestRestartWithAChangedFileAppliesTheStructureOnce: what a refresh refuses, the restart does: a node, a provider,
// another address of a backend, a token. One more restart changes nothing.
func TestRestartWithAChangedFileAppliesTheStructureOnce(t *testing.T) {
	t.Parallel()
	b, second, moved := newBackend(t, backend.Options{}), newBackend(t, backend.Options{}), newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.throttled = true
	w := newWorld(t, l)
	revision := w.status().Revision
	structural := func(l *layout) {
		l.providers = append(l.providers, provider{id: "p2", node: "n2", url: second.URL()})
		l.models["second"] = []string{"p2"}
		l.tokens = map[string]string{"app": "the-key"}
		l.providers[0].capacity, l.providers[0].url = 2, moved.URL()
	}
	r := w.refresh(409, "restart_required", "", structural)
	if named(r.RestartRequiredPaths, "nodes[n2]") {
		t.Error("a node that is new is said to need a restart")
	}
	for _, path := range []string{"nodes[n1].adapters[a-p1].base_url", "openai.principal_tokens[app]"} {
		if !named(r.RestartRequiredPaths, path) {
			t.Errorf("%s is not among %q", path, r.RestartRequiredPaths)
		}
	}
	w.want(200, ask{tag: "no token is asked for"})
	w.layout = w.with(structural)
	w.write("edge.yaml", w.file(&w.layout))
	w.again()
	if got := w.status().Revision; got != revision+1 {
		t.Errorf("revision %d after the restart, want %d", got, revision+1)
	}
	w.startNode("n2")
	w.awaitLink("n2")
	if a := w.ask(ask{tag: "without a token"}); a.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", a.status)
	}
	w.want(200, ask{model: "second", token: "the-key", tag: "second"})
	w.want(200, ask{token: "the-key", tag: "moved"})
	if got := fmt.Sprint(b.Tags(), second.Tags(), moved.Tags()); got != "[no token is asked for] [second] [moved]" {
		t.Errorf("the backends had %s", got)
	}
	w.again()
	if got := w.status().Revision; got != revision+1 {
		t.Errorf("revision %d after one more restart, want %d", got, revision+1)
	}
	if d := w.diff(); len(d.ChangedPaths) != 0 || d.Result != "no_change" {
		t.Errorf("drift: %s", d.raw)
	}
	w.awaitIdle()
}

// TestRefreshedRevisionOutlivesARestart with an unchanged file, and config diff shows how the file lags behind; a refresh
// from the file takes it back. Whatever way the file on disk was taken up, it is not taken up twice.
func TestRefreshedRevisionOutlivesARestart(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.throttled = true
	w := newWorld(t, l)
	capacityIs := func(want int, when string) {
		t.Helper()
		if p := w.provider("p1"); p.Capacity == nil || *p.Capacity != want {
			t.Errorf("%s: %+v, want capacity %d", when, p, want)
		}
	}
	r := w.apply(func(l *layout) { l.providers[0].capacity = 4; l.models["new"] = []string{"p1"} })
	w.again()
	if got := w.status().Revision; got != r.Revision {
		t.Errorf("revision %d after the restart, want %d", got, r.Revision)
	}
	capacityIs(4, "after the restart")
	w.want(200, ask{model: "new", tag: "new"})
	d := w.diff()
	d.wantPath("nodes[n1].providers[p1].capacity", "live", 4, 1)
	if !named([]string{d.ChangedPaths[0].Path, d.ChangedPaths[1].Path}, "models[new]") || len(d.ChangedPaths) != 2 {
		t.Errorf("drift: %s", d.raw)
	}
	wantWords(t, "config diff", w.iopctl(0, "config", "diff"), "nodes[n1].providers[p1].capacity", "models[new]")
	wantWords(t, "config show", w.iopctl(0, "config", "show"), "capacity: 4", fmt.Sprint("revision ", r.Revision))

	back, _ := w.iopctlBoth(0, "refresh", "-o", "json") // the file, as it is on disk
	if r := parseReport(t, []byte(back)); r.Result != "applied" || filepath.Base(r.File) != "edge.yaml" {
		t.Errorf("the refresh from the file: %s", back)
	}
	capacityIs(1, "taken back")
	if d = w.diff(); len(d.ChangedPaths) != 0 {
		t.Errorf("drift: %s", d.raw)
	}

	// The file changes and is refreshed from; then a candidate comes by itself; then a restart.
	w.layout = w.with(func(l *layout) { l.providers[0].capacity = 2; delete(l.models, "new") })
	w.write("edge.yaml", w.file(&w.layout))
	w.iopctl(0, "refresh")
	capacityIs(2, "from the changed file")
	r = w.apply(func(l *layout) { l.providers[0].capacity = 3 })
	w.again()
	capacityIs(3, "after the second restart")
	if got := w.status().Revision; got != r.Revision {
		t.Errorf("revision %d after the second restart, want %d", got, r.Revision)
	}
	w.awaitIdle()
}

// TestRefreshBySignal: SIGHUP reads the file again; one that is faulty or needs a restart is told in the log, and changes
// nothing. The history tells who brought which revision.
func TestRefreshBySignal(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 3, Default: backend.Plan{Hold: backend.BeforeHead}})
	w, side := newBusyWorld(t, shared(b, 1), "n1")
	flights := []*flight{w.start(ask{tag: "r0"})}
	await(t, "one runs", func() bool { return b.Stats().Held == 1 })
	flights = append(flights, w.queue(ask{tag: "r1"}, 1), w.queue(ask{tag: "r2"}, 2))
	revision := w.status().Revision
	said := func(text string) func() bool { return func() bool { return w.edge.says(text) } }

	faulty := w.with(func(l *layout) { l.providers[0].capacity = -1 })
	w.write("edge.yaml", w.file(&faulty))
	hangUp(t, w.edge.process)
	await(t, "the log tells the fault", said("nodes[0].providers[0].capacity"))
	structural := w.with(func(l *layout) { l.providers[0].capacity = 3; l.edits["nodes[0].alias"] = "another" })
	w.write("edge.yaml", w.file(&structural))
	hangUp(t, w.edge.process)
	await(t, "the log tells what needs a restart", said("nodes[n1].alias"))
	if got := w.status().Revision; got != revision || b.Stats().Total != 1 {
		t.Errorf("something was applied: revision %d", got)
	}

	w.layout = w.with(func(l *layout) { l.providers[0].capacity = 3 })
	w.write("edge.yaml", w.file(&w.layout))
	hangUp(t, w.edge.process)
	await(t, "the waiters run", func() bool { return b.Stats().Held == 3 })
	w.apply(func(l *layout) { l.providers[0].priority = 7 })
	var h adminapi.ConfigHistory
	if err := json.Unmarshal([]byte(w.iopctl(0, "config", "history", "-o", "json")), &h); err != nil {
		t.Fatal(err)
	}
	var sources []string
	for i, x := range h.Revisions {
		sources = append(sources, x.Source)
		if want := revision + 2 - uint64(i); x.Revision != want || x.Index == 0 || x.Time.IsZero() {
			t.Errorf("history: %+v, want revision %d", x, want)
		}
	}
	if !slices.Equal(sources, []string{"refresh", "refresh", "start"}) {
		t.Errorf("history: %v", sources)
	}
	b.LetAll()
	for _, f := range flights {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// TestRefreshKilledInBetween: an edge that is killed while it is refreshed again and again comes back with the last
// revision that it answered, or the one after it, whole; never with an older one, and never with its file's.
func TestRefreshKilledInBetween(t *testing.T) {
	t.Parallel()
	random := dice(t)
	b := newBackend(t, backend.Options{})
	l := shared(b, 1)
	l.throttled = true
	w := newWorld(t, l)
	capacity := map[uint64]int{}
	revision, next := w.status().Revision, 2
	for round := range rounds(6, 60) {
		victim := w.edge.cmd.Process
		time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, func() { _ = victim.Kill() })
		for {
			l := w.with(func(l *layout) { l.providers[0].capacity = next })
			capacity[revision+1] = next
			next++
			r, err := tryRefresh(w.edge.admin, w.file(&l))
			if err != nil {
				break // the kill
			}
			if r.Revision != revision+1 {
				t.Fatalf("round %d: revision %d after %d: %+v", round, r.Revision, revision, r)
			}
			revision++
		}
		w.nodes["n1"].kill() // a fresh one, whose reconnects have not slowed down yet
		w.again()
		w.startNode("n1")
		w.awaitLink("n1")
		now := w.status().Revision
		if now != revision && now != revision+1 {
			t.Fatalf("round %d: revision %d after the kill, %d was answered before", round, now, revision)
		}
		if revision = now; capacity[now] == 0 {
			capacity[now] = 1
		}
		if p := w.provider("p1"); *p.Capacity != capacity[now] {
			t.Errorf("round %d: revision %d has capacity %d, want %d", round, now, *p.Capacity, capacity[now])
		}
		w.want(200, ask{tag: fmt.Sprint("round", round)})
	}
	w.awaitIdle()
}

func tryRefresh(address string, file []byte) (*adminapi.RefreshReport, error) {
	c, err := adminapi.NewClient(adminapi.ClientOptions{Addresses: []string{address}, Timeout: patience})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Refresh(context.Background(), adminapi.RefreshRequest{File: file})
}
