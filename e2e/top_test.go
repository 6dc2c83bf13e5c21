//go:build !windows

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"iop/cli/top/terminal"
	"iop/e2e/backend"
)

// top is iopctl top on a terminal.
type top struct {
	*terminal.Screen
	cmd *exec.Cmd
	end chan error
}

// openTop starts it; the test's end kills it, if it still runs.
func openTop(t testing.TB, width, height int, args ...string) *top {
	t.Helper()
	x := &top{Screen: terminal.Open(t, width, height), end: make(chan error, 1)}
	x.cmd = exec.Command(program(t, "iopctl"), append([]string{"top"}, args...)...)
	x.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR=", "TERM_PROGRAM=")
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = x.TTY, x.TTY, x.TTY
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { x.end <- x.cmd.Wait() }()
	t.Cleanup(func() { _ = x.cmd.Process.Kill() })
	return x
}

// ended wants it to have ended with a code.
func (x *top) ended(t testing.TB, code int) {
	t.Helper()
	await(t, "top ends", func() bool { return len(x.end) > 0 })
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("top ended with code %d, want %d:\n%s", got, code, x.Text())
	}
}

// TestTop: the view shows what the edge is doing, explains it, and does what it is told, once it is sure.
func TestTop(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1, Default: backend.Plan{Hold: backend.BeforeHead}})
	w := newWorld(t, shared(b, 1))
	runs := w.start(ask{tag: "runs"})
	lease := w.awaitLeases(1)[0]
	away := w.queue(ask{tag: "away", model: "ornith-fast"}, 1)
	stays := w.queue(ask{tag: "stays", model: "m"}, 2)
	waiting := w.waiters()

	var one struct {
		Providers, Nodes, Leases, Waiters, Members, Pulse []map[string]any
	}
	if err := json.Unmarshal([]byte(w.iopctl(0, "top", "-o", "json")), &one); err != nil {
		t.Fatal(err)
	}
	if len(one.Providers) != 1 || len(one.Nodes) != 1 || len(one.Leases) != 1 || len(one.Waiters) != 2 || one.Waiters[0]["waits_for"] == "" || one.Members == nil || one.Pulse == nil {
		t.Errorf("one picture: %+v", one)
	}
	wantWords(t, "one picture", w.iopctl(0, "top", "--once", "-o", "table"), "2 of 64 pending", waiting[0].Request, waiting[1].Request, lease.Request, "p1 is full")

	x := openTop(t, 80, 24, "--edge", w.edge.admin, "--every", "250ms")
	x.Await("iop edge-1 (leader, term", "queue ", " 2/64, 0 long", "in flight 1", "nodes 1/1", "live", "[1 Providers 1]", "2 Queue 2", "3 Leases 1", "> p1", "full", "1/1")
	x.Keys("2")
	x.Await(waiting[0].Request[len(waiting[0].Request)-4:], "ornith-fast", "p1 is full", "[2 Queue 2]", "never")
	x.Keys("/", "fast", terminal.KeyEnter)
	x.Await("Queue 1 of 2", "filter: fast")
	x.Keys(terminal.KeyEnter)
	x.Await("is number 1 in the queue", "one of its slots has to", "WHAT HAPPENED")
	x.Keys(terminal.KeyEsc)
	x.Await("PLACE")
	x.Keys("x")
	x.Await("Take request "+waiting[0].Request, "canceled_by_operator", "y: yes")
	x.Keys("n")
	x.Await("Nothing was changed.")
	if n := w.pending(); n != 2 {
		t.Errorf("%d wait after a no", n)
	}
	x.Keys("x")
	x.Await("Take request " + waiting[0].Request)
	x.Keys("y")
	x.Await("has left the queue", "2 Queue 0 of 1")
	a := away.wait(t)
	a.wantError(t, 503, "canceled_by_operator")
	x.Keys(terminal.KeyEsc)
	x.Await("[2 Queue 1]")

	x.Keys("3", terminal.KeyEnter)
	x.Await("lease 1", lease.Request, "Provider")
	x.Keys("q")
	x.Await("[3 Leases 1]", "LEASE")
	x.Keys("1")
	x.Await("> p1")
	x.Keys(terminal.KeyEnter)
	x.Await("The backend says of itself")
	x.Keys("q", "d")
	x.Await("Drain provider p1? It gets no new requests; the 1 that runs goes on")
	x.Keys(terminal.KeyEsc)
	x.Await("Nothing was changed.")
	if w.provider("p1").Draining {
		t.Error("drained after a no")
	}
	x.Keys("d")
	x.Await("Drain provider p1?")
	x.Keys("y")
	x.Await("Provider p1 gets no new requests.", "draining")
	if !w.provider("p1").Draining {
		t.Error("not drained")
	}
	x.Keys("d")
	x.Await("Let provider p1 take requests again?")
	x.Keys("y")
	x.Await("Provider p1 takes requests again.")

	x.Size(60, 20)
	x.AwaitThat("60x20", func(s string) bool {
		return strings.Count(s, "\n") == 19 && strings.Contains(s, "> p1") && !strings.Contains(s, "OF IT LONG")
	})
	x.Size(200, 60)
	x.Await("CAUSE", "openai_compat", "p pause  q quit")
	b.LetAll()
	for _, f := range []*flight{runs, stays} {
		if a := f.wait(t); a.status == 0 {
			t.Errorf("%s: %v", f.ask.tag, a.err)
		}
	}
	x.Await("2 Queue 0", "3 Leases 0", "available")
	x.Keys(terminal.KeyCtrlC)
	x.ended(t, 0)
	x.Restored()
	w.awaitIdle()
}

// TestTopGoesOn: when its edge is killed it says that its numbers are old and goes on at another one; when all are, it waits
// until one is back. SIGTERM ends it in order.
func TestTopGoesOn(t *testing.T) {
	t.Parallel()
	b := newBackend(t, backend.Options{Limit: 1})
	c := newCluster(t, shared(b, 1), 3)
	x := openTop(t, 100, 30, "--edge", c.at(0).edge.admin, "--edge", c.at(1).edge.admin, "--every", "250ms")
	x.Await("iop edge-1 (", "live", "replicas 3/3", "> p1")
	c.kill(0)
	x.Await("iop edge-2 (", "live", "replicas 2/3")
	c.stop(1)
	c.kill(2)
	x.Await("NOT CONNECTED", "All numbers here are OLD", "Trying again", "no edge answered")
	x.Keys("d")
	x.Await("nothing is changed from here")
	for i := range 3 {
		c.launch(i)
	}
	c.awaitAll()
	x.Await("live", "Connected again")
	c.leader(0, 1, 2)
	x.Await("live", "leader", "replicas 3/3")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.ended(t, 0)
	x.Restored()
	c.caughtUp(0)
}

// TestTopRefuses: without a feed there is no view: the terminal keeps what it shows, and the error has a cure.
func TestTopRefuses(t *testing.T) {
	t.Parallel()
	x := openTop(t, 120, 24, "--edge", "127.0.0.1:1")
	x.Await("no edge answered", "cure:")
	x.ended(t, 1)
	if s := x.Written(); strings.Contains(s, "\x1b[?") {
		t.Errorf("written to the terminal: %q", s)
	}
}
