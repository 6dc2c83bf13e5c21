package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"iop/e2e/backend"
	"iop/edged/adminapi"
)

// These are the steps of docs/OPERATING.md ("Replicas"), with real processes and the commands as they stand there.

// rebuiltReport is what restore and recover print as JSON.
type rebuiltReport struct {
	DataDir       string   `json:"data_dir"`
	Replica       string   `json:"replica"`
	Cluster       string   `json:"cluster"`
	WasCluster    string   `json:"was_cluster"`
	Index         uint64   `json:"index"`
	SessionsEnded []string `json:"sessions_ended"`
	Leases        int      `json:"leases"`
	Waiters       int      `json:"waiters"`
	WasMembers    []string `json:"was_members"`
	Kept          string   `json:"kept"`
}

// rebuilt runs a command that makes a directory.
func (w *world) rebuilt(args ...string) (r rebuiltReport) {
	w.t.Helper()
	out, _ := w.iopctlBoth(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// TestTwoOfThreeLost: "lost two of three". The survivor goes on alone with its line and its counts, and grows again.
func TestTwoOfThreeLost(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	l := shared(b, 1)
	c := newEmptyCluster(t, l, 3)
	c.secure()
	for i := range 3 {
		c.launch(i)
	}
	c.awaitAll()
	c.startNodes()
	left := c.followers()[0]
	w := c.at(left)
	w.iopctl(0, "nodes", "drain", "n1") // something that has to be there afterwards
	w.iopctl(0, "nodes", "undrain", "n1")
	w.start(ask{tag: "holder"})
	w.awaitLeases(1)
	w.queue(ask{tag: "line", key: "mine"}, 1)
	index := c.agree()
	was := c.members(left).Cluster
	for i := range 3 { // the machines of the two others burn down, and then the third is stopped
		if i != left {
			c.kill(i)
		}
	}
	said := w.iopctl(1, "cluster", "recover", "--data-dir", w.dataDir())
	wantWords(t, "recover of a running replica", said, "in use", "stop that process first")
	c.kill(left)

	wantWords(t, "its last entries", w.iopctl(0, "debug", "log", "--data-dir", w.dataDir()), "drain")
	r := w.rebuilt("cluster", "recover", "--data-dir", w.dataDir())
	slices.Sort(r.WasMembers)
	if r.Index < index || r.WasCluster != was || r.Cluster == was || r.Replica != c.id(left) || r.Leases != 1 || r.Waiters != 1 ||
		!slices.Equal(r.WasMembers, []string{"edge-1", "edge-2", "edge-3"}) || len(r.SessionsEnded) != 2 {
		t.Errorf("recovered: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(r.Kept, "log.db")); err != nil {
		t.Errorf("the old directory: %v", err)
	}
	c.start(left)
	if got := c.voters(left); !slices.Equal(got, []string{c.id(left)}) {
		t.Errorf("voters %v", got)
	}
	await(t, "the node is linked again", func() bool { return w.link("n1") != 0 })
	f := w.start(ask{tag: "line", key: "mine"})
	await(t, "who waited runs: the slot of the lost run came back", func() bool { return b.Stats().Held > 0 })
	b.LetAll()
	if a := f.wait(t); a.status != 200 {
		t.Errorf("who waited: %d %s", a.status, a.body)
	}

	other := (left + 1) % 3
	c.launch(other) // by mistake, with its old directory
	await(t, "it is refused", func() bool { return c.at(other).edge.says("is of cluster") })
	c.kill(other)
	for i := range 3 { // new machines under the old names, with empty directories
		if i == left {
			continue
		}
		if err := os.RemoveAll(c.at(i).dataDir()); err != nil {
			t.Fatal(err)
		}
		c.launch(i)
		w.iopctl(0, "cluster", "add", c.id(i), c.public(i), "--wait")
		c.await(i)
	}
	c.awaitLinks("n1")
	for i := range 3 {
		c.at(i).want(200, ask{tag: "again, through " + c.id(i), model: "ornith-fast"})
	}
	c.sameState(left, 3)
}

// TestBackUpAndRestore: "back up and restore". A backup is taken of each replica under load, and restored into a new cluster.
func TestBackUpAndRestore(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 2})
	b.SetFor("holder", backend.Plan{Tokens: 5, Hold: backend.AfterTokens, At: 2})
	l := shared(b, 2)
	c := newCluster(t, l, 3)
	w := c.at(0)
	w.start(ask{tag: "holder"})
	w.awaitLeases(1)
	_, stop := c.traffic(1)
	file := filepath.Join(c.dir, "iop.backup")
	for i := range 3 {
		said := c.at(i).iopctl(0, "cluster", "backup", "-o", file)
		wantWords(t, "backup", said, "index", c.id(i), file)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	out, errs := w.iopctlBoth(0, "cluster", "backup", "-o", "-")
	if !strings.HasPrefix(out, "iopback1") || !strings.Contains(errs, "standard output") {
		t.Errorf("on standard output: %.20q %s", out, errs)
	}
	stop()
	was := c.members(0).Cluster
	for i := range 3 {
		c.kill(i)
	}
	first := c.at(0)
	wantWords(t, "over a directory in use", first.iopctl(1, "cluster", "restore", file, "--data-dir", first.dataDir(), "--replica", "edge-1"), "not empty", "cure:")
	for i := range 3 {
		if err := os.Rename(c.at(i).dataDir(), c.at(i).dataDir()+"-old"); err != nil {
			t.Fatal(err)
		}
	}
	cut := filepath.Join(c.dir, "cut.backup")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	wantWords(t, "of a backup that was cut off", first.iopctl(1, "cluster", "restore", cut, "--data-dir", first.dataDir(), "--replica", "edge-1"), "damaged", "another backup")
	r := first.rebuilt("cluster", "restore", file, "--data-dir", first.dataDir(), "--replica", "edge-1", "--new-cluster")
	if r.WasCluster != was || r.Cluster == was || r.Leases < 1 || len(r.SessionsEnded) != 2 {
		t.Errorf("restored: %+v", r)
	}
	c.alone(0)
	c.await(0)
	c.awaitLinks("n1")
	await(t, "what ran in the old life ends by the rules", func() bool { return len(first.leases()) == 0 })
	first.want(200, ask{tag: "restored", model: "ornith-fast"})
	for i := 1; i < 3; i++ {
		c.launch(i)
		first.iopctl(0, "cluster", "add", c.id(i), c.public(i), "--wait")
		c.await(i)
	}
	c.awaitLinks("n1")
	for i := range 3 {
		c.at(i).want(200, ask{tag: fmt.Sprint("restored, through ", i), model: "ornith-fast"})
	}
	c.sameState(2, 3)
	b.LetAll()
	first.awaitIdle()
}

// TestBackupOfAStoppedReplica, and of one that can't be reached.
func TestBackupOfAStoppedReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared(newBackend(t, backend.Options{}), 1))
	w.want(200, ask{tag: "one"})
	w.awaitIdle()
	terminate(t, w.edge.process)
	w.edge.code(t)
	file := w.path("off.backup")
	wantWords(t, "nobody answers", w.iopctl(1, "cluster", "backup", "-o", file), "no edge answered")
	if left, _ := filepath.Glob(filepath.Join(w.dir, ".iop-backup*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	w.iopctl(0, "cluster", "backup", "--data-dir", w.dataDir(), "-o", file)
	r := w.rebuilt("cluster", "restore", file, "--data-dir", w.path("again"), "--replica", "edge-1")
	if r.Index == 0 || r.Leases != 0 {
		t.Errorf("%+v", r)
	}
	m := inspect(t, w.path("again"))
	if s := m.Snapshot(); s.Granted != 1 || s.Returned != 1 {
		t.Errorf("granted %d, returned %d", s.Granted, s.Returned)
	}
}

// TestClusterCommandsWithoutALeader exit with 5; looking goes on.
func TestClusterCommandsWithoutALeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, shared(newBackend(t, backend.Options{}), 1), 3)
	left := c.leader()
	for i := range 3 {
		if i != left {
			c.kill(i)
		}
	}
	await(t, "there is no leader", func() bool { return c.at(left).status().Leader == "" })
	w := c.at(left)
	var x adminapi.Cluster
	if err := json.Unmarshal([]byte(w.iopctl(0, "cluster", "members", "-o", "json")), &x); err != nil || len(x.Members) != 3 || x.Leader != "" {
		t.Errorf("%+v %v", x, err)
	}
	wantWords(t, "members", w.iopctl(0, "cluster", "members"), "no answer", "knows of no leader")
	gone := c.id((left + 1) % 3)
	wantWords(t, "transfer", w.iopctl(5, "cluster", "transfer", gone), "no leader", "cure:")
	wantWords(t, "verify", w.iopctl(5, "cluster", "verify"), "no leader", "cure:")
	wantWords(t, "remove", w.iopctl(5, "cluster", "remove", gone, "--force"), "no leader", "cure:")
	w.iopctl(0, "cluster", "backup", "-o", filepath.Join(c.dir, "last.backup"))
	for i := range 3 {
		if i != left {
			c.start(i)
		}
	}
	c.agree()
}
