package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/e2e/backend"
	"iop/edged/adminapi"
	"iop/fsm"
)

// copyData copies the edge's data directory, which must not be written to meanwhile, and returns the copy.
func (w *world) copyData() string {
	w.t.Helper()
	to := filepath.Join(w.t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(w.dataDir())); err != nil {
		w.t.Fatal(err)
	}
	return to
}

// digest is the digest and the index of the machine that the data directory holds.
func (w *world) digest() (sum [32]byte, index uint64) {
	w.t.Helper()
	var m *fsm.Machine
	before := w.status().AppliedIndex
	await(w.t, "a moment in which the index stands still", func() bool {
		m = inspect(w.t, w.copyData())
		now := w.status().AppliedIndex
		still := now == before
		before = now
		return still
	})
	return m.Digest(), m.Index()
}

// everything is a change of a bit of everything live.
func everything(l *layout) {
	l.providers[0].capacity, l.providers[1].disabled = 1, true
	delete(l.models, "gone")
	l.models["new"] = []string{"p1"}
	l.queue, l.threshold = 7, 5000
}

// TestRefreshDryRunChangesNothing: the digest of the machine is the same before and after; the report says all that
// apply then does, which waiters it touches, and which providers are above their new capacity.
func TestRefreshDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	hold := backend.Plan{Hold: backend.BeforeHead}
	b1, b2 := newBackend(t, backend.Options{Limit: 3, Default: hold}), newBackend(t, backend.Options{Limit: 3, Default: hold})
	l := pair(b1, b2, 3)
	l.models["gone"] = []string{"p1", "p2"}
	w, side := newBusyWorld(t, l, "n1")
	var running []*flight
	for i := range 6 {
		running = append(running, w.start(ask{tag: fmt.Sprint("r", i), model: fmt.Sprint("only", i%2+1)}))
	}
	await(t, "both are full", func() bool { return b1.Stats().Held == 3 && b2.Stats().Held == 3 })
	models := []string{"only1", "only2", "both", "gone"}
	waiting := map[string]*flight{}
	for i, m := range models {
		waiting[m] = w.queue(ask{tag: m, model: m}, i+1)
	}
	queue := w.waiters()

	resume := side.pause()
	sum, index := w.digest()
	dry := w.refresh(200, "dry_run", "?dry_run=true", everything)
	byCLI, _ := w.refreshBy(0, everything, "--dry-run")
	after, indexAfter := w.digest()
	if sum != after || index != indexAfter {
		t.Errorf("the dry run changed the machine: index %d to %d, digest %x to %x", index, indexAfter, sum, after)
	}
	now := w.waiters()
	for i := range now {
		now[i].AgeMS = queue[i].AgeMS
	}
	if diff := cmp.Diff(queue, now); diff != "" {
		t.Errorf("the queue changed (-before +after):\n%s", diff)
	}
	resume()
	if dry.Revision != w.status().Revision || !dry.DryRun {
		t.Errorf("revision %d, dry_run %v", dry.Revision, dry.DryRun)
	}
	if diff := cmp.Diff(dry.RefreshReport, byCLI.RefreshReport); diff != "" {
		t.Errorf("iopctl reports otherwise (-http +iopctl):\n%s", diff)
	}
	wantAffected(t, &dry, queue)
	dry.wantOver("p1 3/1 0/-")
	dry.wantTouched("p1 p2", "gone new")

	real := w.apply(everything)
	same := func(r adminapi.RefreshReport) adminapi.RefreshReport {
		r.Result, r.DryRun, r.Revision = "", false, 0
		return r
	}
	if diff := cmp.Diff(same(dry.RefreshReport), same(real.RefreshReport)); diff != "" {
		t.Errorf("apply did something else than the dry run said (-dry +real):\n%s", diff)
	}
	for model, code := range map[string]string{"only2": "provider_unavailable", "gone": "model_not_found"} {
		a := waiting[model].wait(t)
		if a.code() != code {
			t.Errorf("the waiter of %s was answered %d %q, want %q", model, a.status, a.code(), code)
		}
	}
	b1.LetAll()
	b2.LetAll()
	for _, f := range append(running, waiting["only1"], waiting["both"]) {
		a := f.wait(t)
		a.want(t, 200)
	}
	side.end()
}

// wantAffected: the report names the waiters of all models but only1, with what they lose.
func wantAffected(t *testing.T, r *refreshReport, queue []adminapi.Waiter) {
	t.Helper()
	want := map[string][]string{}
	for _, x := range queue {
		switch x.Model {
		case "only2", "both":
			want[x.Request] = []string{"p2"}
		case "gone":
			want[x.Request] = []string{"p1", "p2"}
		}
	}
	got := map[string][]string{}
	for _, x := range r.Waiters {
		got[x.Request] = x.Loses
		if len(x.Gains) != 0 || x.Model == "" {
			t.Errorf("waiter %+v", x)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || r.WaitersAffected != 3 {
		t.Errorf("%d waiters affected, want 3; they lose (-want +got):\n%s", r.WaitersAffected, diff)
	}
}

// TestRefreshDryRunOfAStoppedEdge compares the file with the data directory, and writes nothing there.
func TestRefreshDryRunOfAStoppedEdge(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w, side := newBusyWorld(t, shared(b, 2), "n1")
	w.apply(func(l *layout) { l.providers[0].capacity = 4 })
	side.end()
	revision := w.status().Revision
	for _, p := range []*process{w.nodes["n1"], w.edge.process} {
		terminate(t, p)
		p.code(t)
	}
	before := treeOf(t, w.dataDir())
	same, _ := w.refreshBy(0, func(*layout) {}, "--dry-run", "--data-dir", w.dataDir())
	if same.Result != "no_change" || same.Revision != revision || len(same.ChangedPaths) != 0 {
		t.Errorf("the same file: %s", same.raw)
	}
	r, _ := w.refreshBy(0, func(l *layout) { l.providers[0].capacity = 1 }, "--dry-run", "--data-dir", w.dataDir())
	if r.Result != "dry_run" || r.Revision != revision || !slices.Equal(r.PushedNodes, []string{}) {
		t.Errorf("another file: %s", r.raw)
	}
	r.wantPath("nodes[n1].providers[p1].capacity", "live", 4, 1)
	r, _ = w.refreshBy(3, func(l *layout) { l.edits["nodes[0].alias"] = "another" }, "--dry-run", "--data-dir", w.dataDir())
	r.wantPath("nodes[n1].alias", "restart_required", "", "another")
	if diff := cmp.Diff(before, treeOf(t, w.dataDir())); diff != "" {
		t.Errorf("the dry run wrote into the data directory (-before +after):\n%s", diff)
	}
}

// treeOf are the files below a directory and hashes of their contents.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		out[path] = sha(string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
