package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"iop/e2e/backend"
	"iop/noded"
)

// nextProgram builds a program of a protocol to come, which shares no version with today's.
func nextProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+"-next"+exe())
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "iop_next_protocol", "-o", path, "iop/"+name+"/cmd/"+name).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

// checkNode runs `noded check` of a program for the world's node n1.
func (w *world) checkNode(code int, path, token string) *noded.CheckReport {
	w.t.Helper()
	file := w.write("check.yaml", nodeFile("n1", token, w.nodeAddress()))
	cmd := exec.CommandContext(w.t.Context(), path, "check", "--config", file, "-o", "json")
	out, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("noded check: exit code %d (%v), want %d\n%s", got, err, code, out)
	}
	return decodeAs[*noded.CheckReport](w.t, string(out))
}

// TestNodeOfAnotherProtocolIsRefused by today's edge: it is told why and what to do, asks again and again, and disturbs nobody.
// With the right program the node comes up.
func TestNodeOfAnotherProtocolIsRefused(t *testing.T) {
	t.Parallel()
	next := nextProgram(t, "noded")
	w := newEdgeOnly(t, shared(newBackend(t, backend.Options{}), 1))
	file := w.write("node-n1.yaml", nodeFile("n1", nodeToken("n1"), w.nodeAddress()))
	p := w.track(spawn(t, "noded next", nil, next, "--config", file))
	await(t, "the node is told", func() bool {
		return p.says("protocol_version") && p.says("the node speaks protocol 2 to 2, this edge 1 to 1") && p.says("install versions of noded and edged")
	})
	if got := w.checkNode(1, next, nodeToken("n1")).Edges[0]; got.Code != "protocol_version" || got.Cure == "" {
		t.Errorf("check %+v", got)
	}
	if w.node("n1").Connected {
		t.Error("it is connected")
	}
	terminate(t, p)
	if code := p.code(t); code != 0 {
		t.Errorf("noded ended with code %d", code)
	}
	w.startNode("n1")
	w.awaitLink("n1")
	w.want(200, ask{})
	w.awaitIdle()
}

// TestEdgeOfAnotherProtocolRefuses today's node, in words that name both ranges.
func TestEdgeOfAnotherProtocolRefuses(t *testing.T) {
	t.Parallel()
	next := nextProgram(t, "edged")
	w := newEmptyWorld(t, shared(newBackend(t, backend.Options{}), 1))
	p := w.track(spawn(t, "edged next", nil, next, "--config", w.write("edge.yaml", w.layout.edgeFile("edge-1", w.dataDir()))))
	r := p.awaitReady(t)
	w.edge = &edge{process: p, openai: r["openai"], node: r["node"], admin: r["admin"]}
	n := w.startNode("n1")
	await(t, "the node is told", func() bool { return n.says("the node speaks protocol 1 to 1, this edge 2 to 2") })
	if got := w.checkNode(1, program(t, "noded"), nodeToken("n1")).Edges[0]; got.Code != "protocol_version" {
		t.Errorf("check %+v", got)
	}
}

// TestCheckOfARunningNode: all is well, the link that is there stays, and what is wrong is told with its code.
func TestCheckOfARunningNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	g := w.awaitLink("n1")
	r := w.checkNode(0, program(t, "noded"), nodeToken("n1"))
	if e := r.Edges[0]; !r.OK || !e.OK || !e.Connected || e.Edge != "edge-1" || e.Revision == 0 || len(r.Providers) != 1 || !r.Providers[0].OK {
		t.Errorf("check %+v", r)
	}
	if got := w.checkNode(1, program(t, "noded"), "wrong").Edges[0]; got.Code != "wrong_token" {
		t.Errorf("check %+v", got)
	}
	b.Refuse()
	r = w.checkNode(1, program(t, "noded"), nodeToken("n1"))
	if p := r.Providers[0]; !r.Edges[0].OK || p.OK || p.Code != "backend" || p.Cure == "" {
		t.Errorf("check %+v", r)
	}
	if err := b.Accept(); err != nil {
		t.Fatal(err)
	}
	if got := w.awaitLink("n1"); got != g {
		t.Errorf("generation %d after %d", got, g)
	}
	w.want(200, ask{})
	w.awaitIdle()
}
