package edged

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"iop/configs"
	"iop/edged/adminapi"
	"iop/fsm"
)

// file is an edge file without nodes that run: what can be refreshed without any.
type file struct {
	queue    int
	capacity int
	alias    string
	openai   string
	model    string
}

func newFile() file {
	return file{queue: 8, capacity: 2, alias: "a", openai: "127.0.0.1:0", model: "m"}
}

func (f file) text(dir string) []byte {
	return fmt.Appendf(nil, `
edge: { id: e1, data_dir: %q, listen: { openai: %q, node: "127.0.0.1:0", admin: "127.0.0.1:0" } }
provider_pool: { max_queue: %d }
models: [ { id: %s, providers: { p: s } } ]
nodes:
  - id: n
    alias: %s
    token_hash_sha256: %q
    adapters: [ { id: a, type: vllm, base_url: "http://127.0.0.1:1/v1" } ]
    providers: [ { id: p, type: vllm, adapter: a, models: [s], capacity: %d } ]
`, dir, f.openai, f.queue, f.model, f.alias, configs.HashToken("t"), f.capacity)
}

// running is an edge that runs, and its file.
type running struct {
	*Daemon
	t    *testing.T
	path string
	dir  string
	log  *lines
	stop func()
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, dir string, f file) *running {
	t.Helper()
	r := &running{t: t, path: filepath.Join(dir, "edge.yaml"), dir: filepath.Join(dir, "data"), log: &lines{}}
	r.write(f)
	config, _, err := configs.LoadEdge(r.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Daemon, err = New(Options{Config: config, ConfigPath: r.path, Logger: slog.New(slog.NewTextHandler(r.log, nil))}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() { end <- r.Run(ctx) }()
	select {
	case <-r.Ready():
	case err := <-end:
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *running) write(f file) {
	r.t.Helper()
	if err := os.WriteFile(r.path, f.text(r.dir), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// want refreshes and checks the result and the revision.
func (r *running) want(q adminapi.RefreshRequest, result string, revision uint64) *adminapi.RefreshReport {
	r.t.Helper()
	report, err := r.refresh(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	if report.Result != result || report.Revision != revision {
		r.t.Fatalf("%s, revision %d; want %s, %d: %+v", report.Result, report.Revision, result, revision, report)
	}
	return report
}

func (r *running) digest() (d [32]byte) {
	r.store.View(func(m *fsm.Machine) { d = m.Digest() })
	return d
}

func (r *running) send(f file) adminapi.RefreshRequest {
	return adminapi.RefreshRequest{File: f.text(r.dir)}
}

func TestRefreshAppliesTheFileOnDisk(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	r.want(adminapi.RefreshRequest{}, "no_change", 1)
	f := newFile()
	f.queue, f.model = 9, "m2"
	r.write(f)
	got := r.want(adminapi.RefreshRequest{}, "applied", 2)
	if got.File != r.path || cmp.Diff([]string{"n"}, got.PendingNodes) != "" || len(got.PushedNodes) != 0 {
		t.Errorf("%+v", got)
	}
	if v := r.view.load(); v.revision != 2 || v.cluster.ProviderPool.MaxQueue != 9 || v.public.Models[0].ID != "m2" || v.nodes["n"].Revision != 2 {
		t.Errorf("the view was not swapped: %+v", v)
	}
	r.want(adminapi.RefreshRequest{}, "no_change", 2)
}

func TestDryRunChangesNothing(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	f := newFile()
	f.capacity = 5
	q := r.send(f)
	q.DryRun = true
	before := r.digest()
	dry := r.want(q, "dry_run", 1)
	if r.digest() != before {
		t.Error("the dry run changed the machine")
	}
	q.DryRun = false
	real := r.want(q, "applied", 2)
	real.Result, real.Revision, real.DryRun = dry.Result, dry.Revision, dry.DryRun
	if diff := cmp.Diff(real, dry); diff != "" {
		t.Errorf("the dry run reports otherwise (-applied +dry):\n%s", diff)
	}
}

func TestRestartRequired(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	f := newFile()
	f.capacity, f.alias, f.openai = 5, "other", "127.0.0.1:1"
	got := r.want(r.send(f), "restart_required", 1)
	left := []string{"edge.listen.openai", "nodes[n].alias"}
	if diff := cmp.Diff(left, got.RestartRequiredPaths); diff != "" {
		t.Error(diff)
	}
	q := r.send(f)
	q.LiveOnly = true
	got = r.want(q, "applied", 2)
	if diff := cmp.Diff(left, got.RestartRequiredPaths); diff != "" {
		t.Error(diff)
	}
	if c := r.view.load().cluster; c.Nodes[0].Alias != "a" || c.Nodes[0].Providers[0].Capacity != 5 {
		t.Errorf("%+v", c.Nodes[0])
	}
	if got = r.want(q, "no_change", 2); len(got.RestartRequiredPaths) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestExpectedRevisionGuards(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	f := newFile()
	f.queue = 9
	q := r.send(f)
	q.Expected = new(uint64)
	r.want(q, "conflict", 1)
	*q.Expected = 1
	r.want(q, "applied", 2)
	r.want(q, "conflict", 2)
}

// One of several refreshes at once wins; the others see its revision, or come after it with nothing or all of their own.
func TestRefreshesAtOnce(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	one := uint64(1)
	results := make([]*adminapi.RefreshReport, 8)
	var all sync.WaitGroup
	for i := range results {
		f := newFile()
		f.queue = 20 + i
		q := r.send(f)
		q.Expected = &one
		all.Go(func() { results[i], _ = r.refresh(t.Context(), q) })
	}
	all.Wait()
	won := 0
	for _, x := range results {
		switch {
		case x == nil:
			t.Fatal("a refresh failed")
		case x.Result == "applied":
			won++
		case x.Result != "conflict":
			t.Errorf("%+v", x)
		}
		if x.Revision != 2 {
			t.Errorf("%s tells revision %d, want that of the winner", x.Result, x.Revision)
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}

func TestInvalidFileNamesEveryProblem(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	f := newFile()
	f.capacity, f.queue = -1, -1
	got := r.want(r.send(f), "invalid", 1)
	if len(got.Problems) != 2 || got.Problems[0].Path != "provider_pool.max_queue" || got.Problems[1].Path != "nodes[0].providers[0].capacity" {
		t.Errorf("%+v", got.Problems)
	}
}

// A file that was refreshed from the disk is the one that this edge knows: an unchanged start keeps what came after it.
func TestAnUnchangedFileKeepsTheRefreshedRevision(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFile())
	f := newFile()
	f.queue = 9
	r.write(f)
	r.want(adminapi.RefreshRequest{}, "applied", 2)
	sent := f
	sent.queue = 10
	r.want(r.send(sent), "applied", 3)
	r.stop()
	r = start(t, dir, f)
	if v := r.view.load(); v.revision != 3 || v.cluster.ProviderPool.MaxQueue != 10 {
		t.Errorf("revision %d, max_queue %d", v.revision, v.cluster.ProviderPool.MaxQueue)
	}
	drift := r.want(adminapi.RefreshRequest{DryRun: true}, "dry_run", 3)
	if len(drift.ChangedPaths) != 1 || string(drift.ChangedPaths[0].Old) != "10" || string(drift.ChangedPaths[0].New) != "9" {
		t.Errorf("%+v", drift.ChangedPaths)
	}
}

// What a refresh left for a restart, the restart brings, once.
func TestARestartBringsWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, newFile())
	f := newFile()
	f.capacity, f.alias = 5, "other"
	r.write(f)
	r.want(adminapi.RefreshRequest{LiveOnly: true}, "applied", 2)
	r.stop()
	r = start(t, dir, f)
	if v := r.view.load(); v.revision != 3 || v.cluster.Nodes[0].Alias != "other" {
		t.Errorf("revision %d, alias %q", v.revision, v.cluster.Nodes[0].Alias)
	}
	r.stop()
	if r = start(t, dir, f); r.view.load().revision != 3 {
		t.Errorf("revision %d after a start with the same file", r.view.load().revision)
	}
}

// The view follows the machine, whoever applied what it has.
func TestTheViewFollowsOthers(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	c := *r.view.load().cluster
	c.ProviderPool.MaxQueue = 77
	r.fresh.ready.Store(&upcoming{view: &view{revision: 2}, document: []byte("of a change that lost")})
	if o, err := r.propose(t.Context(), &fsm.ApplyConfig{Document: c.Canonical(), Expected: 1}); err != nil || o.Code != fsm.Applied {
		t.Fatal(o, err)
	}
	if v := r.view.load(); v.revision != 2 || v.cluster == nil || v.cluster.ProviderPool.MaxQueue != 77 {
		t.Errorf("%+v", v)
	}
	h := r.told()
	if len(h) != 2 || h[0].Revision != 2 || h[0].Source != "refresh" || h[0].Edge != "" || h[1].Source != "start" || h[1].Edge != "e1" || h[0].Index <= h[1].Index {
		t.Errorf("%+v", h)
	}
}

func TestRereadLogsTheReport(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	f := newFile()
	f.queue = 9
	r.write(f)
	r.Reread(t.Context())
	f.alias = "other"
	r.write(f)
	r.Reread(t.Context())
	f.queue = -1
	r.write(f)
	r.Reread(t.Context())
	for _, want := range []string{"refresh: applied", "provider_pool.max_queue", "refresh: restart_required, nothing was applied", "nodes[n].alias", "refresh: invalid", "-1 is out of range"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, r.log.String())
		}
	}
	if v := r.view.load(); v.revision != 2 {
		t.Errorf("revision %d", v.revision)
	}
}

func TestAnEdgeWithoutAFileSaysSo(t *testing.T) {
	r := start(t, t.TempDir(), newFile())
	r.o.ConfigPath = ""
	_, err := r.refresh(t.Context(), adminapi.RefreshRequest{})
	if err == nil || !strings.Contains(err.Error(), "file") {
		t.Error(err)
	}
}

func TestRevisionsAreBounded(t *testing.T) {
	var r revisions
	for i := range 3 * revisionsMax {
		r.add(revision{ConfigRevision: adminapi.ConfigRevision{Revision: uint64(i)}})
	}
	if l := r.show(); len(l) != revisionsMax || l[0].Revision != 3*revisionsMax-1 || l[revisionsMax-1].Revision != 2*revisionsMax {
		t.Errorf("%d, %+v", len(l), l[0])
	}
}

// A revision is told with what it changed, and its document, within bounds.
func TestRevisionsTellWhatChanged(t *testing.T) {
	document := func(capacity int) []byte {
		e, _, err := configs.ParseEdge(fmt.Appendf(nil, `
edge: { id: edge-1, data_dir: d }
models: [ { id: m, providers: { p1: s } } ]
nodes:
  - id: n1
    token_hash_sha256: %q
    adapters: [ { id: a, type: vllm, base_url: "http://127.0.0.1:1/v1" } ]
    providers: [ { id: p1, type: vllm, adapter: a, models: [s], capacity: %d } ]
`, configs.HashToken("t"), capacity), "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		return e.Canonical()
	}
	var r revisions
	add := func(n uint64, document []byte) {
		r.add(revision{ConfigRevision: adminapi.ConfigRevision{Revision: n, Index: n}, document: document})
	}
	add(3, document(1))
	add(4, document(2))
	add(6, document(3)) // 5 was missed
	add(7, document(4))
	for range 2 {
		l := r.show()
		if len(l) != 4 || l[3].Changes != nil || l[1].Changes != nil || len(l[2].Changes) != 1 || len(l[0].Changes) != 1 {
			t.Fatalf("%+v", l)
		}
		if c := l[2].Changes[0]; c.Path != "nodes[n1].providers[p1].capacity" || string(c.Old) != "1" || string(c.New) != "2" {
			t.Errorf("%+v", c)
		}
		if c := l[0].Changes[0]; string(c.Old) != "3" || string(c.New) != "4" {
			t.Errorf("%+v", c)
		}
	}
	if got, ok := r.find(6); !ok || !bytes.Equal(got, document(3)) {
		t.Errorf("%v %s", ok, got)
	}
	big := make([]byte, revisionBytesMax/2)
	add(8, big)
	add(9, big)
	add(10, big)
	for n, want := range map[fsm.Revision]bool{3: false, 8: false, 9: true, 10: true, 11: false} {
		if _, ok := r.find(n); ok != want {
			t.Errorf("the document of %d is kept: %v", n, ok)
		}
	}
}
