package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"iop/cli"
)

// screen collects what is written to a terminal, and can be waited on.
type screen struct {
	mu    sync.Mutex
	grown *sync.Cond
	text  string
	over  bool
}

// terminal opens one, and its screen.
func terminal(t *testing.T) (tty *os.File, s *screen) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	s = &screen{}
	s.grown = sync.NewCond(&s.mu)
	var reading sync.WaitGroup
	reading.Go(func() {
		for buf := make([]byte, 4096); ; {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.text += string(buf[:n])
			s.over = err != nil
			s.grown.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { _ = tty.Close(); _ = master.Close(); reading.Wait() })
	return tty, s
}

// shows waits until the screen has shown a text; false: it never will.
func (s *screen) shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text, text) && !s.over {
		s.grown.Wait()
	}
	return strings.Contains(s.text, text)
}

// A command that waits for something, until go on is called.
type waiting struct {
	name   string
	args   string
	shown  string // on a terminal, while it waits
	result string // on standard output, after it
	answer func(goOn func(), w http.ResponseWriter, r *http.Request)
}

func waits() []waiting {
	body := func(w http.ResponseWriter, format string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, format, args...)
	}
	cluster := func(voter bool) string {
		return fmt.Sprintf(`{"cluster":"c","edge":"edge-1","leader":"edge-1","members":[{"id":"edge-1","voter":true,"role":"leader"},`+
			`{"id":"edge-2","voter":%v,"role":"follower","applied_index":7,"lag":5}]}`, voter)
	}
	return []waiting{
		{"drain", "providers drain p1 --wait", "provider p1: 1 request still runs (", "nothing runs on it", func(goOn func(), w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body(w, `{"provider":"p1","node":"n1","on":true}`)
				return
			}
			body(w, `{"providers":[{"id":"p1","node":"n1","in_flight":%d}]}`, untilSeen(goOn))
		}},
		{"cluster add", "cluster add edge-2 gw2:7400 --wait", "replica edge-2 is follower, at index 7, 5 behind (", "Replica edge-2 votes.", func(goOn func(), w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				body(w, "%s", cluster(false))
				return
			}
			body(w, "%s", cluster(untilSeen(goOn) == 0))
		}},
		{"refresh", "refresh", "waiting for the edge, and for its nodes to confirm (", "no_change", func(goOn func(), w http.ResponseWriter, _ *http.Request) {
			goOn()
			body(w, `{"result":"no_change","revision":7}`)
		}},
		{"verify", "cluster verify", "waiting for the digests of all replicas (", "have the same state", func(goOn func(), w http.ResponseWriter, _ *http.Request) {
			goOn()
			body(w, `{"index":1,"same":true,"replicas":[{"id":"edge-1","digest":"aa"},{"id":"edge-2","digest":"aa"}]}`)
		}},
		{"transfer", "cluster transfer edge-2", "handing leadership over (", "Leader: edge-1.", func(goOn func(), w http.ResponseWriter, _ *http.Request) {
			goOn()
			body(w, "%s", cluster(true))
		}},
	}
}

// untilSeen is 1 at the first look, and 0 once the screen has shown what was told then.
func untilSeen(goOn func()) int {
	if goOn == nil {
		return 1
	}
	goOn()
	return 0
}

// TestWaitsShowProgress: on a terminal a long command shows what it waits for and takes the line away at the end; in a pipe there is
// nothing but the result.
func TestWaitsShowProgress(t *testing.T) {
	for _, x := range waits() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			tty, s := terminal(t)
			out := runWaiting(t, &x, tty, func() {
				if !s.shows(x.shown) {
					t.Errorf("the terminal never shows %q", x.shown)
				}
			})
			if !strings.Contains(out, x.result) {
				t.Errorf("no %q in %q", x.result, out)
			}
			_, _ = io.WriteString(tty, "END")
			s.shows("END")
			if !strings.HasSuffix(s.text, "\r\x1b[KEND") {
				t.Errorf("it left something on the screen: %q", s.text)
			}
			var errs bytes.Buffer
			if out := runWaiting(t, &x, &errs, func() {}); !strings.Contains(out, x.result) || errs.Len() > 0 {
				t.Errorf("in a pipe: %q, and on standard error %q", out, errs.String())
			}
		})
	}
}

// runWaiting runs a command against an edge that lets it wait: goOn returns when that may end.
func runWaiting(t *testing.T, x *waiting, stderr io.Writer, goOn func()) string {
	t.Helper()
	var mu sync.Mutex
	looks := 0
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		once := goOn
		if r.Method == http.MethodGet {
			if looks++; looks == 1 {
				once = nil
			}
		}
		x.answer(once, w, r)
	}))
	defer edge.Close()
	var out bytes.Buffer
	code := cli.Run(t.Context(), cli.Deps{}, append(strings.Fields(x.args), "--edge", edge.URL, "--timeout", "0"), strings.NewReader(""), &out, stderr)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	return out.String()
}

// The bytes of a backup and of restoring one are counted.
func TestBackupAndRestoreTellBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "iop.backup")
	made(t, "cluster", "backup", "--data-dir", stopped(t), "-o", from)
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	tty, s := terminal(t)
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.iop.backup")
		_, _ = w.Write(text[:500])
		_ = http.NewResponseController(w).Flush()
		s.shows("backing up: 500 B (")
		_, _ = w.Write(text[500:])
	}))
	defer edge.Close()
	var out bytes.Buffer
	args := []string{"cluster", "backup", "--edge", edge.URL, "-o", filepath.Join(dir, "again.backup")}
	if code := cli.Run(t.Context(), cli.Deps{}, args, nil, &out, tty); code != 0 || !strings.Contains(out.String(), fmt.Sprint(len(text))+" bytes") {
		t.Errorf("code %d: %s", code, out.String())
	}
	r, w := io.Pipe()
	var feeding sync.WaitGroup
	feeding.Go(func() {
		_, _ = w.Write(text[:10])
		s.shows("restoring: 10 B (")
		_, _ = w.Write(text[10:])
		_ = w.Close()
	})
	args = []string{"cluster", "restore", "-", "--data-dir", filepath.Join(dir, "new"), "--replica", "edge-9"}
	if code := cli.Run(t.Context(), cli.Deps{}, args, r, &out, tty); code != 0 {
		t.Errorf("code %d: %s", code, out.String())
	}
	_ = r.Close()
	feeding.Wait()
}

// A dumb terminal can't take a line away, so there is none.
func TestNoProgressOnADumbTerminal(t *testing.T) {
	t.Parallel()
	tty, s := terminal(t)
	edge, _ := drainEdge(t, 0)
	var out bytes.Buffer
	dumb := cli.Deps{Env: func(name string) (string, bool) { return map[string]string{"TERM": "dumb"}[name], name == "TERM" }}
	if code := cli.Run(t.Context(), dumb, []string{"providers", "drain", "p1", "--wait", "--edge", edge}, nil, &out, tty); code != 0 {
		t.Errorf("code %d", code)
	}
	_, _ = io.WriteString(tty, "END")
	if s.shows("END"); s.text != "END" {
		t.Errorf("%q", s.text)
	}
}
