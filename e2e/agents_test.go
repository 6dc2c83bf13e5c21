//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// agents is a world with one provider that is a command, and a queue for one.
type agents struct {
	*world
	dir string // where the command leaves traces
}

// newAgents starts edge and node; DIR in the command is a directory of the test.
func newAgents(t *testing.T, command ...string) *agents {
	t.Helper()
	a := &agents{dir: t.TempDir()}
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "DIR", a.dir)
	}
	a.world = newWorld(t, layout{
		providers: []provider{{id: "p1", command: command, cli: map[string]any{"scratch": filepath.Join(a.dir, "runs"), "grace_ms": 300}}},
		models:    map[string][]string{"m": {"p1"}}, queue: 1,
		missed: 20, // hundreds of processes on few cores keep a node from its heartbeats; links are tested elsewhere
	})
	return a
}

// processes are the pids that the command and its children have left, by how many children were below each.
func (a *agents) processes() map[int]int {
	out := map[int]int{}
	entries, _ := os.ReadDir(a.dir)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, _ := os.ReadFile(filepath.Join(a.dir, e.Name()))
		if below, err := strconv.Atoi(string(b)); err == nil {
			out[pid] = below
		}
	}
	return out
}

// awaitGone waits until no process of a run is there any more, nor a directory.
func (a *agents) awaitGone() {
	a.t.Helper()
	await(a.t, "all processes of the run are gone", func() bool {
		for pid := range a.processes() {
			if lives(pid) {
				return false
			}
		}
		return true
	})
	await(a.t, "the run's directory is gone", func() bool {
		left, _ := os.ReadDir(filepath.Join(a.dir, "runs"))
		return len(left) == 0
	})
}

// lives tells whether a process runs; one that has ended and that nobody has waited for does not.
func lives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// running starts a stream and waits until the command and its two children are there.
func (a *agents) running() *flight {
	a.t.Helper()
	f := a.start(ask{tag: "agent", stream: true})
	await(a.t, "the command and its children run", func() bool { return len(a.processes()) == 3 })
	a.awaitLeases(1)
	return f
}

func TestAgentAnswers(t *testing.T) {
	t.Parallel()
	a := newAgents(t, self(t), agentCommand, "--json", "-")
	for _, stream := range []bool{false, true} {
		got := a.want(200, ask{prompt: "hello", stream: stream})
		if got.text() != "read 5 bytes" {
			t.Errorf("stream %v: %s", stream, got.body)
		}
		if last := frames(got.body); stream && (len(last) == 0 || string(last[len(last)-1]) != "[DONE]") {
			t.Errorf("the stream ends with %q", last)
		}
	}
	got := a.ask(ask{body: []byte(`{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"x"}]}`)})
	got.wantError(t, 400, "unsupported_parameter")
	a.awaitIdle()
}

func TestAgentsGrandchildrenEndWithTheClient(t *testing.T) {
	t.Parallel()
	a := newAgents(t, self(t), badAgentCommand, "DIR", "child", "grandchild")
	f := a.running()
	f.leave()
	a.awaitGone()
	a.awaitIdle()
}

func TestKillOfAnAgentBreaksItsStream(t *testing.T) {
	t.Parallel()
	a := newAgents(t, self(t), badAgentCommand, "DIR", "child", "grandchild")
	f := a.running()
	for pid, below := range a.processes() {
		if below == 2 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := f.wait(t)
	if got.text() != "begun" || got.clean || !strings.Contains(string(got.body), "provider_error") || !strings.Contains(string(got.body), "killed") {
		t.Errorf("clean %v: %s", got.clean, got.body)
	}
	a.awaitGone()
	a.awaitIdle()
}

func TestAgentsDoNotOutliveANodeThatIsKilled(t *testing.T) {
	t.Parallel()
	a := newAgents(t, self(t), badAgentCommand, "DIR", "child", "grandchild")
	f := a.running()
	a.nodes["n1"].kill()
	if got := f.wait(t); got.clean {
		t.Errorf("the stream ended in order: %s", got.body)
	}
	a.awaitGone()
	a.awaitIdle()
}

func TestAnAgentThatIsNotThereIsUnavailable(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "DIR/there-is-no-such-command")
	got := a.ask(ask{})
	if got.status < 500 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	a.awaitIdle()
}

// A command without a capacity is leased and counted, and never full: nothing waits.
func TestAHundredAgentsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAgents(t, "cat", "DIR/gate")
	gate := filepath.Join(a.dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const runs = 100
	flights := make([]*flight, 0, runs)
	for i := range runs {
		flights = append(flights, a.start(ask{tag: fmt.Sprint("run-", i), stream: i%2 == 0}))
	}
	a.awaitLeases(runs)
	if p := a.provider("p1"); p.InFlight != runs || p.Queued != 0 || p.Capacity != nil || a.pending() != 0 {
		t.Errorf("in flight %d, queued %d, capacity %v, pending %d", p.InFlight, p.Queued, p.Capacity, a.pending())
	}
	awaitWithin(t, 3*patience, "all commands run", func() bool {
		left, _ := os.ReadDir(filepath.Join(a.dir, "runs"))
		return len(left) == runs
	})
	awaitWithin(t, 3*patience, "all commands have ended", func() bool {
		// Whoever reads the pipe by now comes to the end of it; the others by the next time.
		if gate, err := os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = gate.Close()
		}
		return !slices.ContainsFunc(flights, func(f *flight) bool { return !f.over() })
	})
	for _, f := range flights {
		got := f.wait(t)
		got.want(t, 200)
	}
	a.awaitGone()
	a.awaitIdle()
}
