package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"iop/e2e/backend"
	"iop/e2e/cut"
)

// world is a running system: one edge, its nodes, and what a test looks at.
type world struct {
	t      testing.TB
	layout layout
	dir    string
	edge   *edge
	nodes  map[string]*process
	line   *cut.Proxy // between nodes and the edge, if the layout asks for it
	all    []*process // everything ever started, for logs and the end
	grants uint64     // leases that the log must have granted and got back in the end; 0 = not checked
}

// edge is a running edged and where it listens.
type edge struct {
	*process
	openai, node, admin string
}

// newBackend starts a backend for the test.
func newBackend(t testing.TB, o backend.Options) *backend.Backend {
	t.Helper()
	b, err := backend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// newWorld starts an edge and all nodes of the layout, and waits until every link is ready.
func newWorld(t testing.TB, l layout) *world {
	t.Helper()
	w := newEdgeOnly(t, l)
	for _, n := range w.layout.nodes() {
		w.startNode(n)
	}
	for _, n := range w.layout.nodes() {
		w.awaitLink(n)
	}
	return w
}

// newEdgeOnly starts an edge and no node.
func newEdgeOnly(t testing.TB, l layout) *world {
	t.Helper()
	w := newEmptyWorld(t, l)
	w.startEdge()
	return w
}

// newEmptyWorld makes the directory and the cleanup, and starts nothing.
func newEmptyWorld(t testing.TB, l layout) *world {
	t.Helper()
	w := &world{t: t, layout: l, dir: t.TempDir(), nodes: map[string]*process{}}
	if l.throttled {
		line, err := cut.New("")
		if err != nil {
			t.Fatal(err)
		}
		w.line = line
	}
	t.Cleanup(w.end)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name string, content []byte) string {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.path(name)
}

func (w *world) dataDir() string { return w.path("data") }

// startEdge starts the edge (again) on the world's data directory and waits until it is ready.
func (w *world) startEdge() {
	w.t.Helper()
	p := w.spawnEdge(w.write("edge.yaml", w.layout.edgeFile("edge-1", w.dataDir())))
	r := p.awaitReady(w.t)
	w.edge = &edge{process: p, openai: r["openai"], node: r["node"], admin: r["admin"]}
	if w.edge.openai == "" || w.edge.node == "" || w.edge.admin == "" {
		w.t.Fatalf("the ready line lacks an address: %q", p.out.line)
	}
	if w.line != nil {
		w.line.Retarget(w.edge.node)
	}
}

// spawnEdge starts an edged and waits for nothing.
func (w *world) spawnEdge(file string, env ...string) *process {
	w.t.Helper()
	return w.track(spawn(w.t, "edged", env, program(w.t, "edged"), "--config", file, "--log-level", or(w.layout.log, "debug"), "--log-format", or(w.layout.format, "text")))
}

func (w *world) track(p *process) *process {
	w.all = append(w.all, p)
	return p
}

// nodeAddress is what nodes dial.
func (w *world) nodeAddress() string {
	if w.line != nil {
		return w.line.Address()
	}
	return w.edge.node
}

// startNode starts (again) the noded with an id; awaitLink waits for its link.
func (w *world) startNode(id string) *process {
	w.t.Helper()
	w.nodes[id] = w.spawnNode(id, nodeToken(id))
	return w.nodes[id]
}

// replaceNode kills a node, or stops it in order, and starts it anew once the edge knows that it is gone.
func (w *world) replaceNode(id string, kill bool) {
	w.t.Helper()
	if kill {
		w.nodes[id].kill()
	} else {
		terminate(w.t, w.nodes[id])
		w.nodes[id].code(w.t)
	}
	await(w.t, "the edge knows that "+id+" is gone", func() bool { return w.link(id) == 0 })
	w.startNode(id)
}

// spawnNode starts a noded that the world does not count as the one with that id.
func (w *world) spawnNode(id, token string) *process {
	w.t.Helper()
	file := w.write("node-"+id+".yaml", w.layout.nodeFile(id, token, w.nodeAddress()))
	return w.track(spawn(w.t, "noded "+id, nil, program(w.t, "noded"), "--config", file, "--log-level", or(w.layout.log, "debug"), "--log-format", or(w.layout.format, "text")))
}

// restartEdge starts the edge again on the same directory; nodes that run find it by themselves.
func (w *world) restartEdge() {
	w.t.Helper()
	w.startEdge()
	for id, p := range w.nodes {
		if w.line == nil && p.running() {
			w.t.Fatalf("node %s can't follow the edge to another port: the layout must be throttled", id)
		}
	}
}

// end stops everything. A test that passed so far also has to end in order.
func (w *world) end() {
	if !w.t.Failed() && !w.t.Skipped() {
		w.endInOrder()
	}
	for _, p := range w.all {
		p.kill()
	}
	if w.line != nil {
		w.line.Close()
	}
	if w.t.Failed() {
		for _, p := range w.all {
			w.t.Logf("--- %s (pid %d), its last words:\n%s", p.name, p.cmd.Process.Pid, tail(p.out.String(), 60))
		}
	}
}

// endInOrder asks nodes and edge to stop and checks what they leave.
func (w *world) endInOrder() {
	for _, p := range w.nodes {
		if p.running() {
			terminate(w.t, p)
		}
	}
	for id, p := range w.nodes {
		if code := p.code(w.t); code != 0 && code != -1 {
			w.t.Errorf("noded %s ended with code %d", id, code)
		}
	}
	if w.edge == nil {
		return
	}
	if w.edge.running() {
		terminate(w.t, w.edge.process)
		if code := w.edge.code(w.t); code != 0 {
			w.t.Errorf("edged ended with code %d", code)
		}
	}
	for _, p := range w.all {
		for _, bad := range []string{"panic:", "fatal error:", "DATA RACE"} {
			if p.says(bad) {
				w.t.Errorf("%s said %q", p.name, bad)
			}
		}
	}
	w.checkData()
}
