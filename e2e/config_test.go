package e2e

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"

	"iop/e2e/backend"
)

// startEdgeWrong starts an edged that must not come up, and returns its exit code and words.
func (w *world) startEdgeWrong(file string) (int, string) {
	w.t.Helper()
	p := w.spawnEdge(file)
	code := p.code(w.t)
	return code, p.out.String()
}

// wantWords checks that a message names each of some things.
func wantWords(t *testing.T, what, message string, words ...string) {
	t.Helper()
	for _, x := range words {
		if !strings.Contains(message, x) {
			t.Errorf("%s: the message does not name %q:\n%s", what, x, tail(message, 12))
		}
	}
	if strings.Contains(message, "goroutine ") {
		t.Errorf("%s: a stack trace instead of a message:\n%s", what, tail(message, 30))
	}
}

// TestBadConfigIsRefused: each bad edge file ends edged with code 2 and a message that names file, line and path; iopctl
// config validate says the same.
func TestBadConfigIsRefused(t *testing.T) {
	t.Parallel()
	l := shared(newBackend(t, backend.Options{}), 1)
	w := newEmptyWorld(t, l)
	good := string(l.edgeFile("edge-1", w.dataDir()))
	for name, c := range map[string]struct {
		file  string
		words []string
	}{
		"unknown key":       {strings.Replace(good, `"max_queue"`, `"max_queu"`, 1), []string{"max_queu", "max_queue", ":"}},
		"malformed":         {good[:len(good)-3], []string{"edge.yaml"}},
		"wrong kind":        {strings.Replace(good, `"max_queue": 64`, `"max_queue": "many"`, 1), []string{"max_queue"}},
		"dangling provider": {strings.Replace(good, `"p1": "served/p1"`, `"p9": "served/p1"`, 1), []string{"p9"}},
		"no capacity":       {strings.Replace(good, `"capacity": 1`, `"capacity": 0`, 1), []string{"capacity"}},
		"two problems":      {strings.Replace(strings.Replace(good, `"capacity": 1`, `"capacity": -1`, 1), `: 1000,`, `: 0,`, 1), []string{"capacity", "long_context_threshold_tokens"}},
		"empty":             {"", []string{"edge"}},
	} {
		if c.file == good {
			t.Fatalf("%s: the file is as good as before", name)
		}
		file := w.write("edge.yaml", []byte(c.file))
		code, said := w.startEdgeWrong(file)
		if code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
		wantWords(t, name, said, append(c.words, "edge.yaml")...)
		wantWords(t, name+", validate", w.iopctl(2, "config", "validate", file), c.words...)
	}
	code, said := w.startEdgeWrong(w.path("nowhere.yaml"))
	if code != 2 {
		t.Errorf("no file: exit code %d", code)
	}
	wantWords(t, "no file", said, "nowhere.yaml")
	w.iopctl(0, "config", "validate", w.write("edge.yaml", []byte(good)))
	p := w.track(spawn(t, "edged", nil, program(t, "edged"), "--no-such-flag"))
	if code := p.code(t); code != 2 {
		t.Errorf("an unknown flag: exit code %d", code)
	}
	node := w.write("node.yaml", []byte(`node: {id: n1, token: x, edges: ["127.0.0.1:1"], colour: red}`))
	p = w.track(spawn(t, "noded", nil, program(t, "noded"), "--config", node))
	if code := p.code(t); code != 2 {
		t.Errorf("a bad node file: exit code %d", code)
	}
	wantWords(t, "node file", p.out.String(), "colour", "node.yaml")
}

// TestPortTaken: each listener whose port is taken ends edged with code 1 and names the address; nothing stays behind.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, which := range []string{"openai", "node", "admin"} {
		l := shared(newBackend(t, backend.Options{}), 1)
		listen := map[string]any{"openai": "127.0.0.1:0", "node": "127.0.0.1:0", "admin": "127.0.0.1:0"}
		listen[which] = taken.Addr().String()
		l.edge = map[string]any{"listen": listen}
		w := newEmptyWorld(t, l)
		code, said := w.startEdgeWrong(w.write("edge.yaml", l.edgeFile("edge-1", w.dataDir())))
		if code != 1 {
			t.Errorf("%s: exit code %d, want 1", which, code)
		}
		wantWords(t, which, said, taken.Addr().String(), "edge.listen."+which)
		l.edge = nil
		w.layout = l
		w.startEdge()
	}
}

// TestDataDirectory: one that can't be written, or that another edged holds, or that holds something else, is refused
// with a message that says what to do; nothing in it is changed.
func TestDataDirectory(t *testing.T) {
	t.Parallel()
	l := shared(newBackend(t, backend.Options{}), 1)
	w := newEdgeOnly(t, l)
	second := w.write("second.yaml", l.edgeFile("edge-1", w.dataDir()))
	code, said := w.startEdgeWrong(second)
	if code != 1 {
		t.Errorf("held by another: exit code %d, want 1", code)
	}
	wantWords(t, "held by another", said, w.dataDir(), "another")

	file := w.write("a-file", []byte("not a directory"))
	code, said = w.startEdgeWrong(w.write("third.yaml", l.edgeFile("edge-1", file+"/data")))
	if code != 1 {
		t.Errorf("below a file: exit code %d, want 1", code)
	}
	wantWords(t, "below a file", said, file)

	if os.Getuid() != 0 {
		closed := w.path("closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		code, said = w.startEdgeWrong(w.write("fourth.yaml", l.edgeFile("edge-1", closed+"/data")))
		if code != 1 {
			t.Errorf("not writable: exit code %d, want 1", code)
		}
		wantWords(t, "not writable", said, closed)
	}
	if len(w.status().Providers) != 1 {
		t.Error("the first edge is harmed")
	}
}

// TestDamagedLog: a directory whose files are damaged is refused, not half read.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{})
	w := newWorld(t, shared(b, 1))
	w.want(200, ask{})
	w.awaitIdle()
	for _, p := range []*process{w.nodes["n1"], w.edge.process} {
		terminate(t, p)
		p.code(t)
	}
	var damaged []string
	entries, err := os.ReadDir(w.dataDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if file := w.dataDir() + "/" + e.Name(); strings.Contains(e.Name(), ".db") || strings.Contains(e.Name(), "log") {
			whole, err := os.ReadFile(file)
			if err != nil || len(whole) < 4096 {
				continue
			}
			damaged = append(damaged, file)
			if err := os.WriteFile(file, bytes.Repeat([]byte{0xff}, len(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, said := w.startEdgeWrong(w.write("edge.yaml", w.layout.edgeFile("edge-1", w.dataDir())))
			if code != 1 {
				t.Errorf("%s damaged: exit code %d, want 1", e.Name(), code)
			}
			wantWords(t, e.Name(), said, w.dataDir())
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(damaged) == 0 {
		t.Error("found no log to damage in the data directory")
	}
}
