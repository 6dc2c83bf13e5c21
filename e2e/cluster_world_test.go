package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"iop/e2e/cut"
)

// cluster is a running system of several replicas. Replica i is edge-(i+1); at(i) is a world whose helpers (ask, open,
// status, iopctl …) ask that one. Everything has an address that a restart does not change:
//
//	127.A.B.(i+1)     replica i itself, A and B drawn for the test
//	127.A.B.(101+i)   where the others find its cluster listener
//
// In between is one proxy for each way: paths[i][j] carries what replica i dials to replica j, lines[n][i] what node n
// dials to replica i. What a replica sends goes over the connections that it dialled and over those that it accepted, so
// a partition has to break paths[i][j] and paths[j][i]; apart and deaf do, heal mends everything.
type cluster struct {
	t        testing.TB
	layout   layout
	dir      string
	net      [2]byte
	replicas []*world
	nodes    map[string]*process
	all      []*process
	paths    [][]*cut.Proxy // [from][to]
	forks    []*cut.Fork
	lines    map[string][]*cut.Proxy // by node, then replica
	tls      bool
	names    map[int]string // of replicas that are not called edge-(i+1)
	// border is how to start a replica's program if there is to be something between it and its system; nil = plainly.
	border func(i int, path string, args ...string) (string, []string)
}

// newCluster starts n replicas and all nodes of the layout, and waits until every node has a ready link to each.
func newCluster(t testing.TB, l layout, n int, prepared ...func(*cluster)) *cluster {
	t.Helper()
	c := newEmptyCluster(t, l, n)
	for _, prepare := range prepared {
		prepare(c)
	}
	for i := range n {
		c.launch(i)
	}
	c.awaitAll()
	c.startNodes()
	return c
}

// newEmptyCluster makes directories, addresses and the network in between, and starts nothing.
func newEmptyCluster(t testing.TB, l layout, n int) *cluster {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8: each replica needs an address of its own")
	}
	c := &cluster{t: t, layout: l, dir: t.TempDir(), nodes: map[string]*process{}, lines: map[string][]*cut.Proxy{}}
	c.net = [2]byte{byte(1 + rand.IntN(250)), byte(rand.IntN(250))}
	t.Cleanup(c.end)
	for i := range n {
		c.replicas = append(c.replicas, &world{t: t, layout: l, dir: filepath.Join(c.dir, c.id(i)), nodes: c.nodes})
		if err := os.MkdirAll(c.replicas[i].dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.connect(n)
	return c
}

// connect puts the proxies in between.
func (c *cluster) connect(n int) {
	c.t.Helper()
	proxy := func(target string) *cut.Proxy {
		p, err := cut.New(target)
		if err != nil {
			c.t.Fatal(err)
		}
		return p
	}
	for range n {
		row := make([]*cut.Proxy, n)
		for j := range row {
			row[j] = proxy(c.own(j, 7400))
		}
		c.paths = append(c.paths, row)
	}
	for j := range n {
		f, err := cut.NewFork(c.public(j), func(from net.IP) *cut.Proxy {
			if i := int(from.To4()[3]) - 1; i >= 0 && i < n {
				return c.paths[i][j]
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
		c.forks = append(c.forks, f)
	}
	for _, node := range c.layout.nodes() {
		for i := range n {
			c.lines[node] = append(c.lines[node], proxy(c.own(i, 7443)))
		}
	}
}

func (c *cluster) id(i int) string {
	if name, ok := c.names[i]; ok {
		return name
	}
	return fmt.Sprintf("edge-%d", i+1)
}

// own is where replica i listens itself.
func (c *cluster) own(i, port int) string {
	return fmt.Sprintf("127.%d.%d.%d:%d", c.net[0], c.net[1], i+1, port)
}

// public is where the others find replica i.
func (c *cluster) public(i int) string {
	return fmt.Sprintf("127.%d.%d.%d:7400", c.net[0], c.net[1], 101+i)
}

// at is the world as seen from replica i.
func (c *cluster) at(i int) *world { return c.replicas[i] }

// file renders the file of replica i.
func (c *cluster) file(i int) []byte { return c.render(c.layout, i) }

// render renders the file of replica i under a layout that need not be the cluster's.
func (c *cluster) render(l layout, i int) []byte {
	peers := []any{}
	for j := range c.replicas {
		peers = append(peers, map[string]any{"id": c.id(j), "address": c.public(j)})
	}
	more, _ := l.edge["cluster"].(map[string]any)
	l.edge = maps.Clone(l.edge)
	if l.edge == nil {
		l.edge = map[string]any{}
	}
	l.edge["listen"] = map[string]any{
		"openai": c.own(i, 8080), "node": c.own(i, 7443), "admin": c.own(i, 9080), "cluster": c.own(i, 7400),
	}
	member := map[string]any{"peers": peers}
	maps.Copy(member, more)
	l.edge["cluster"] = member
	if c.tls {
		home := filepath.Join(c.dir, "certs", "edges", c.id(i))
		l.edge["tls"] = map[string]any{
			"cert": filepath.Join(home, "cert.pem"), "key": filepath.Join(home, "key.pem"), "client_ca": filepath.Join(home, "ca.pem"),
		}
	}
	return l.edgeFile(c.id(i), c.at(i).dataDir())
}

// secure makes certificates for everything, with iopctl. Call it before anything starts.
func (c *cluster) secure() {
	c.t.Helper()
	c.tls = true
	dir := filepath.Join(c.dir, "certs")
	c.at(0).iopctl(0, "certs", "init", "--dir", dir)
	for i := range c.replicas {
		c.at(0).iopctl(0, "certs", "edge", c.id(i), "--dir", dir)
	}
	for _, n := range c.layout.nodes() {
		c.at(0).iopctl(0, "certs", "node", n, "--dir", dir)
	}
}

// launch starts replica i (again) and waits for nothing; await does.
func (c *cluster) launch(i int) {
	c.t.Helper()
	w := c.at(i)
	path, args := program(c.t, "edged"), []string{"--config", w.write("edge.yaml", c.file(i)), "--log-level", or(c.layout.log, "debug")}
	if c.border != nil {
		path, args = c.border(i, path, args...)
	}
	p := spawn(c.t, c.id(i), nil, path, args...)
	c.all = append(c.all, p)
	w.edge = &edge{process: p, openai: c.own(i, 8080), node: c.own(i, 7443), admin: c.own(i, 9080)}
}

// await waits until replica i is ready.
func (c *cluster) await(i int) { c.t.Helper(); c.at(i).edge.awaitReady(c.t) }

// awaitAll waits until every replica that runs is ready.
func (c *cluster) awaitAll() {
	c.t.Helper()
	for _, i := range c.running() {
		c.await(i)
	}
}

// start is launch and await.
func (c *cluster) start(i int) { c.t.Helper(); c.launch(i); c.await(i) }

// kill is kill -9 of replica i.
func (c *cluster) kill(i int) { c.at(i).edge.kill() }

// stop ends replica i in order, which takes a majority.
func (c *cluster) stop(i int) {
	c.t.Helper()
	terminate(c.t, c.at(i).edge.process)
	if code := c.at(i).edge.code(c.t); code != 0 {
		c.t.Errorf("%s ended with code %d", c.id(i), code)
	}
}

// running are the replicas whose processes are alive.
func (c *cluster) running() []int {
	var out []int
	for i, w := range c.replicas {
		if w.edge != nil && w.edge.running() {
			out = append(out, i)
		}
	}
	return out
}

// startNodes starts every node and waits for its links to all replicas that run.
func (c *cluster) startNodes() {
	c.t.Helper()
	for _, n := range c.layout.nodes() {
		c.startNode(n)
	}
	for _, n := range c.layout.nodes() {
		c.awaitLinks(n)
	}
}

func (c *cluster) startNode(id string) {
	c.t.Helper()
	var edges []string
	for _, line := range c.lines[id] {
		edges = append(edges, line.Address())
	}
	self := map[string]any{"id": id, "token": nodeToken(id), "edges": edges}
	if c.tls {
		home := filepath.Join(c.dir, "certs", "nodes", id)
		self["tls"] = map[string]any{
			"enabled": true, "ca": filepath.Join(home, "ca.pem"), "cert": filepath.Join(home, "cert.pem"), "key": filepath.Join(home, "key.pem"),
		}
	}
	file := c.at(0).write("node-"+id+".yaml", render(map[string]any{"node": self}))
	c.nodes[id] = spawn(c.t, "noded "+id, nil, program(c.t, "noded"), "--config", file, "--log-level", or(c.layout.log, "debug"))
	c.all = append(c.all, c.nodes[id])
}

// awaitLinks waits until a node has a ready link to every replica that runs.
func (c *cluster) awaitLinks(node string) {
	c.t.Helper()
	for _, i := range c.running() {
		await(c.t, "node "+node+" has a ready link to "+c.id(i), func() bool {
			return slices.ContainsFunc(c.at(i).node(node).Links, func(l linkRow) bool { return l.Edge == c.id(i) && l.State == "ready" })
		})
	}
}

// leader waits until all of the given replicas (none: all that run) name the same leader among them, and returns it.
func (c *cluster) leader(among ...int) int {
	c.t.Helper()
	if len(among) == 0 {
		among = c.running()
	}
	found := -1
	await(c.t, fmt.Sprintf("replicas %v agree on a leader among them", among), func() bool {
		found = -1
		for _, i := range among {
			s, err := c.at(i).tryStatus()
			if err != nil || s.Leader == "" {
				return false
			}
			k := slices.IndexFunc(among, func(j int) bool { return c.id(j) == s.Leader })
			if k < 0 || found >= 0 && among[k] != found {
				return false
			}
			found = among[k]
		}
		return true
	})
	return found
}

// followers are the running replicas that do not lead.
func (c *cluster) followers() []int {
	c.t.Helper()
	leader := c.leader()
	return slices.DeleteFunc(c.running(), func(i int) bool { return i == leader })
}

// agree waits until every replica that runs has applied the same, under the same leader.
func (c *cluster) agree() (index uint64) {
	c.t.Helper()
	await(c.t, "all replicas are at the same index with one leader", func() bool {
		leader, leaders := "", 0
		for k, i := range c.running() {
			s, err := c.at(i).tryStatus()
			if err != nil || s.Leader == "" || k > 0 && (s.AppliedIndex != index || s.Leader != leader) {
				return false
			}
			if index, leader = s.AppliedIndex, s.Leader; s.Role == "leader" {
				leaders++
			}
		}
		return leaders == 1
	})
	return index
}

// apart cuts the given replicas off from all others, both ways, without telling anybody: bytes vanish.
func (c *cluster) apart(group ...int) {
	for i := range c.replicas {
		for j := range c.replicas {
			if i != j && slices.Contains(group, i) != slices.Contains(group, j) {
				c.paths[i][j].Swallow(cut.Up, cut.Down)
				c.paths[i][j].SwallowNew(cut.Up, cut.Down)
			}
		}
	}
}

// deaf makes bytes from one replica to another vanish; the other way they pass.
func (c *cluster) deaf(from, to int) {
	c.paths[from][to].Swallow(cut.Up)
	c.paths[from][to].SwallowNew(cut.Up)
	c.paths[to][from].Swallow(cut.Down)
	c.paths[to][from].SwallowNew(cut.Down)
}

// heal lets everything through again. Connections that lost bytes are reset: TCP would have done it.
func (c *cluster) heal() {
	for _, row := range c.paths {
		for _, p := range row {
			p.Refuse(true) // no connection may come in between and miss its first bytes
			p.CutHeld()
			p.Pass()
		}
	}
}

// end stops everything. A test that passed so far also has to end in order: all but the last replica, which alone has
// nobody to hand its work to.
func (c *cluster) end() {
	if !c.t.Failed() && !c.t.Skipped() {
		c.endInOrder()
	}
	for _, p := range c.all {
		p.kill()
	}
	for _, f := range c.forks {
		f.Close()
	}
	for _, p := range slices.Concat(append(c.paths, slices.Collect(maps.Values(c.lines))...)...) {
		p.Close()
	}
	if c.t.Failed() {
		for _, p := range c.all {
			c.t.Logf("--- %s (pid %d), its last words:\n%s", p.name, p.cmd.Process.Pid, tail(p.out.String(), 60))
		}
	}
}

func (c *cluster) endInOrder() {
	c.heal()
	for id, p := range c.nodes {
		if p.running() {
			terminate(c.t, p)
		}
		if code := p.code(c.t); code != 0 && code != -1 {
			c.t.Errorf("noded %s ended with code %d", id, code)
		}
	}
	for 2*len(c.running()) > len(c.replicas)+1 {
		c.stop(c.leader())
	}
	for _, i := range c.running() {
		c.kill(i)
	}
	for _, p := range c.all {
		for _, bad := range []string{"panic:", "fatal error:", "DATA RACE"} {
			if p.says(bad) {
				c.t.Errorf("%s said %q", p.name, bad)
			}
		}
	}
	for _, w := range c.replicas {
		w.checkData()
	}
}
