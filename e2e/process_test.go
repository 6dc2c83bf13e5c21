package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// process is one daemon. Its output is kept and printed if the test fails.
type process struct {
	name string
	cmd  *exec.Cmd
	out  output
	done chan struct{} // closed when it has been waited for
}

// output collects what a process writes and finds its ready line.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
	line  string // the ready line
	found bool
}

// stream is one of stdout and stderr; only stdout carries the ready line.
type outputStream struct {
	o      *output
	stdout bool
	part   []byte
}

func (s *outputStream) Write(p []byte) (int, error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.o.text.Write(p)
	if !s.stdout || s.o.found {
		return len(p), nil
	}
	s.part = append(s.part, p...)
	for {
		line, rest, whole := bytes.Cut(s.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.part = rest
		if f := strings.Fields(string(line)); len(f) > 1 && f[1] == "ready" {
			s.o.line, s.o.found = string(line), true
			close(s.o.ready)
			return len(p), nil
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// spawn starts a program. The caller's cleanup must call end.
func spawn(t testing.TB, name string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.out.ready = make(chan struct{})
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout = &outputStream{o: &p.out, stdout: true}
	p.cmd.Stderr = &outputStream{o: &p.out}
	// An open stdin: the processes of the benchmark end with ours, however it ends.
	if _, err := p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state is read from ProcessState
	}()
	return p
}

// awaitReady waits for the ready line and returns its key=value pairs.
func (p *process) awaitReady(t testing.TB) map[string]string {
	t.Helper()
	select {
	case <-p.out.ready:
	case <-p.done:
		t.Fatalf("%s ended with code %d before it was ready:\n%s", p.name, p.cmd.ProcessState.ExitCode(), tail(p.out.String(), 40))
	case <-time.After(patience):
		t.Fatalf("%s is not ready after %v", p.name, patience)
	}
	return pairs(p.out.line)
}

func pairs(line string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Fields(line) {
		if k, v, ok := strings.Cut(f, "="); ok {
			out[k] = v
		}
	}
	return out
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// code waits for the end and returns the exit code; -1 is the end by a signal.
func (p *process) code(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%s still runs after %v", p.name, patience)
		return 0
	}
}

// kill is kill -9, and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %v to %s: %v", s, p.name, err)
	}
}

// log tells whether the output contains a text.
func (p *process) says(text string) bool { return strings.Contains(p.out.String(), text) }

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// self is this test's own program, which can play others: see TestMain.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
