//go:build !windows

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"iop/configs"
)

// joinReport is what the tests read of iopctl nodes add and nodes token.
type joinReport struct {
	Entry string `json:"edge_file_entry"`
	Join  struct {
		URL   string `json:"url"`
		Token string `json:"join_token"`
		Sh    string `json:"line_sh"`
	} `json:"join"`
}

// newJoinWorld is an edge that serves the noded of this test to new machines.
func newJoinWorld(t *testing.T, change ...func(*layout)) (w *world, artifact string) {
	dir := t.TempDir()
	build, err := os.ReadFile(program(t, "noded"))
	if err != nil {
		t.Fatal(err)
	}
	artifact = filepath.Join(dir, "noded-"+runtime.GOOS+"-"+runtime.GOARCH)
	if err := os.WriteFile(artifact, build, 0o600); err != nil {
		t.Fatal(err)
	}
	l := layout{
		providers: []provider{{id: "p1"}}, models: map[string][]string{"demo": {"p1"}}, edits: map[string]any{},
		edge: map[string]any{"bootstrap": map[string]any{"artifact_dir": dir}},
	}
	for _, c := range change {
		c(&l)
	}
	return newWorld(t, l), artifact
}

// fragment is a node's entry with a demo provider.
func (w *world) fragment(id, provider string) string {
	return w.write(id+".yaml", []byte("alias: New one\nadapters:\n  - { id: a-"+provider+", type: demo }\nproviders:\n  - { id: "+
		provider+", type: demo, adapter: a-"+provider+", models: [served/"+provider+"], capacity: 2 }\n"))
}

func (w *world) nodesAdd(id, provider string, args ...string) joinReport {
	w.t.Helper()
	var r joinReport
	out := w.iopctl(0, append([]string{"nodes", "add", id, "-f", w.fragment(id, provider), "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) nodesToken(id string, args ...string) (r joinReport) {
	w.t.Helper()
	out := w.iopctl(0, append([]string{"nodes", "token", id, "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r.Join); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// machine is a computer that knows nothing of iop: a home, and the tools that a test leaves it.
type machine struct {
	t    *testing.T
	home string
	path string // PATH, "" = that of the test
}

func newMachine(t *testing.T) *machine { return &machine{t: t, home: t.TempDir()} }

// without takes a tool away.
func (m *machine) without(tool string) *machine {
	dir := m.t.TempDir()
	for _, name := range []string{
		"sh", "mktemp", "wget", "curl", "sha256sum", "grep", "cat", "uname", "sysctl", "cut", "sed", "mkdir", "chmod", "cp", "mv", "rm", "id", "printf",
	} {
		if at, err := exec.LookPath(name); err == nil && name != tool {
			if err := os.Symlink(at, filepath.Join(dir, name)); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	m.path = dir
	return m
}

// paste runs a line in a shell, with the arguments behind the script, and returns what it said and how it ended.
func (m *machine) paste(line string, args ...string) (said string, ok bool) {
	m.t.Helper()
	if len(args) > 0 {
		line = strings.Replace(line, `sh "$f"`, `sh "$f" `+strings.Join(args, " "), 1)
	}
	c := exec.Command("sh", "-c", line)
	c.Dir = m.home
	c.Env = []string{"HOME=" + m.home, "TMPDIR=" + m.home, "PATH=" + or(m.path, os.Getenv("PATH"))}
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

// user installs for the user alone, whoever runs the test.
const user = "--user"

func (m *machine) noded() string  { return filepath.Join(m.home, ".local", "bin", "noded") }
func (m *machine) config() string { return filepath.Join(m.home, ".config", "iop", "node.yaml") }

// TestAPastedLineMakesAMachineANode: from nothing to an answered chat, with what the operator and the machine are told.
func TestAPastedLineMakesAMachineANode(t *testing.T) {
	t.Parallel()
	w, _ := newJoinWorld(t)
	revision := w.status().Revision
	r := w.nodesAdd("gpu-new", "p-new")
	if got := w.status().Revision; got != revision+1 {
		t.Errorf("revision %d after the node was added, want %d", got, revision+1)
	}
	for _, tool := range []string{"wget", "curl"} { // first without the one, then, with another token, without the other
		m := newMachine(t).without(tool)
		said, ok := m.paste(r.Join.Sh, user)
		if !ok {
			t.Fatalf("without %s:\n%s", tool, said)
		}
		wantWords(t, "the script", said, "its SHA-256 is right", "installed noded", m.noded(), "joined as node gpu-new", m.config(), "done")
		if strings.Contains(said, r.Join.Token) {
			t.Error("the script shows the join token")
		}
		info, err := os.Stat(m.config())
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v %v", m.config(), info, err)
		}
		p := w.track(spawn(t, "noded gpu-new", nil, m.noded(), "--config", m.config()))
		w.nodes["gpu-new"] = p
		p.awaitReady(t)
		w.awaitLink("gpu-new")
		if _, err := exec.LookPath("wget"); tool == "curl" || err != nil {
			break
		}
		terminate(t, p)
		p.code(t)
		await(t, "the edge knows that it is gone", func() bool { return w.link("gpu-new") == 0 })
		r.Join = w.nodesToken("gpu-new").Join
	}
	// The entry that was printed, in the edge file: nothing of the node differs, and a model for it is live.
	l := w.with(func(l *layout) { l.models["fresh"] = []string{} })
	var file map[string]any
	if err := json.Unmarshal(w.file(&l), &file); err != nil {
		t.Fatal(err)
	}
	file["nodes"] = append(file["nodes"].([]any), w.entry(r.Entry))
	file["models"].([]any)[1].(map[string]any)["providers"] = map[string]any{"p-new": served("p-new")}
	w.iopctl(0, "refresh", "-f", w.write("with-node.yaml", render(file)))
	a := w.want(200, ask{model: "fresh"})
	if got := a.header.Get("X-Iop-Node"); got != "gpu-new" {
		t.Errorf("answered by node %q", got)
	}
	if strings.Contains(w.edge.out.String(), r.Join.Token) {
		t.Error("the edge's log tells a join token")
	}
	wantWords(t, "nodes add of a node that is there", w.iopctl(1, "nodes", "add", "gpu-new"), "nodes token gpu-new")
	w.awaitIdle()
}

// entry reads the YAML that iopctl printed.
func (w *world) entry(text string) map[string]any {
	w.t.Helper()
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(lines[i], "  - "), "    ")
	}
	n, _, err := configs.ParseCatalogNode([]byte(strings.Join(lines, "\n")), "entry", "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(render(n), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// join runs noded join on a machine.
func (w *world) join(m *machine, edge, token string) (said string, code int) {
	c := exec.Command(program(w.t, "noded"), "join", "--edge", edge, "--config", m.config(), "--wait", "60s")
	c.Env = append(os.Environ(), "IOP_JOIN_TOKEN="+token)
	out, _ := c.CombinedOutput() // the code says it
	return string(out), c.ProcessState.ExitCode()
}

// TestAJoinTokenIsUsedOnce, and not after its time.
func TestAJoinTokenIsUsedOnce(t *testing.T) {
	t.Parallel()
	w, _ := newJoinWorld(t)
	r := w.nodesAdd("gpu-new", "p-new")
	first, second := newMachine(t), newMachine(t)
	if said, ok := first.paste(r.Join.Sh, user); !ok {
		t.Fatal(said)
	}
	said, ok := second.paste(r.Join.Sh, user)
	if ok {
		t.Errorf("a second machine joined:\n%s", said)
	}
	wantWords(t, "the second machine", said, "has been used", "iopctl nodes token", "did not join")
	if _, err := os.Stat(second.config()); err == nil {
		t.Error("the second machine has a node file")
	}
	if said, ok := first.paste(r.Join.Sh, user); ok {
		t.Errorf("the first machine joined twice:\n%s", said)
	}
	late := w.nodesToken("gpu-new", "--ttl", "1ms")
	said, code := w.join(second, late.Join.URL, late.Join.Token)
	if code != 2 || !strings.Contains(said, "expired") {
		t.Errorf("an expired token: %d %s", code, said)
	}
	if said, code := w.join(second, late.Join.URL, "iop_guessed"); code != 2 || !strings.Contains(said, "not known") {
		t.Errorf("a guessed token: %d %s", code, said)
	}
	w.iopctl(1, "nodes", "token", "nobody")
	w.iopctl(1, "nodes", "token", "gpu-new", "--ttl", "999h")
}

// TestATamperedBuildIsNotInstalled: neither one that was changed behind the script's back, nor a script that was.
func TestATamperedBuildIsNotInstalled(t *testing.T) {
	t.Parallel()
	w, artifact := newJoinWorld(t)
	r := w.nodesAdd("gpu-new", "p-new")
	m := newMachine(t)
	resp, err := http.Get(r.Join.URL + "/bootstrap/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(artifact, []byte("#!/bin/sh\ntouch \"$HOME/owned\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-s", "--", user)
	c.Stdin = strings.NewReader(string(script))
	c.Env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "IOP_JOIN_TOKEN=" + r.Join.Token}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing was installed") {
		t.Errorf("%v\n%s", err, out)
	}
	if said, ok := m.paste(r.Join.Sh, user); ok || !strings.Contains(said, "not installed") {
		t.Errorf("another script than the operator was told of ran:\n%s", said)
	}
	for _, path := range []string{m.noded(), m.config(), filepath.Join(m.home, "owned")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if err := os.Remove(artifact); err != nil {
		t.Fatal(err)
	}
	wantWords(t, "nodes token without a build", w.iopctl(0, "nodes", "token", "gpu-new"), "no builds of noded", "make artifacts", "noded join --edge")
}

// TestALostAnswerOfAJoin: the edge is killed between the use of the token and its answer. The machine asks again, whoever
// is there then, and is the node.
func TestALostAnswerOfAJoin(t *testing.T) {
	t.Parallel()
	w, _ := newJoinWorld(t, func(l *layout) { l.throttled = true })
	r := w.nodesAdd("gpu-new", "p-new")
	killed := false
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		res, err := http.Post("http://"+w.edge.openai+q.URL.Path, "application/json", q.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer res.Body.Close() //nolint:errcheck // read from only
		if !killed && res.StatusCode == http.StatusOK {
			killed = true
			w.edge.kill()
			w.startEdge()
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(res.StatusCode)
		_, _ = io.Copy(rw, res.Body) // a short answer is found by its reader
	}))
	defer front.Close()
	m := newMachine(t)
	if said, code := w.join(m, front.URL, r.Join.Token); code != 0 || !killed {
		t.Fatalf("code %d, killed %v: %s", code, killed, said)
	}
	p := w.track(spawn(t, "noded gpu-new", nil, program(t, "noded"), "--config", m.config()))
	w.nodes["gpu-new"] = p
	p.awaitReady(t)
	w.awaitLink("gpu-new")
	other := newMachine(t)
	if said, code := w.join(other, front.URL, r.Join.Token); code != 2 {
		t.Errorf("another machine with the same token: %d %s", code, said)
	}
}

// TestRotation: a new join token replaces the node's token when it is used. The link of the old one ends, and it is refused.
func TestRotation(t *testing.T) {
	t.Parallel()
	w, _ := newJoinWorld(t)
	generation := w.link("n1")
	r := w.nodesToken("n1")
	m := newMachine(t)
	if said, code := w.join(m, r.Join.URL, r.Join.Token); code != 0 {
		t.Fatal(said)
	}
	await(t, "the link that was made with the old token has ended", func() bool { return w.link("n1") != generation })
	terminate(t, w.nodes["n1"])
	w.nodes["n1"].code(t)
	await(t, "the edge knows that n1 is gone", func() bool { return w.link("n1") == 0 })
	old := w.spawnNode("n1", nodeToken("n1"))
	await(t, "the old token is refused", func() bool { return old.says("wrong_token") })
	old.kill()
	p := w.track(spawn(t, "noded n1", nil, program(t, "noded"), "--config", m.config()))
	w.nodes["n1"] = p
	p.awaitReady(t)
	w.awaitLink("n1")
	w.want(200, ask{model: "demo"})
	w.awaitIdle()
}
