package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"iop/noded/adapter"
	"iop/noded/adapter/cli"
)

// A run keeps no file open after its end, also if nothing collects what it has left.
func TestRunsLeaveNoFileOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	w := newWorld(t, nil, "say x")
	absent := newWorld(t, func(c *cli.Config) { c.Command = []string{"/proc/self/environ"} })
	run := func() {
		_, end := w.do(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
		wantEnd(t, end, adapter.DispatchedYes, "")
		if _, end := absent.do(`{"model":"m","messages":[{"role":"user","content":"x"}]}`); end.Code == "" {
			t.Fatal("it was started")
		}
	}
	run()
	before := open()
	for range 5 {
		run()
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// A process that leaves its session, its group and its environment, and whose parent ends, is still below the keeper.
func TestDaemonsDoNotEscape(t *testing.T) {
	for name, script := range map[string][]string{
		"canceled":       {"daemon daemon deaf;hang", "daemon deaf,hang", "await 4", "say x", "hang"},
		"left behind":    {"daemon daemon deaf;hang", "daemon deaf,hang", "await 4", "say x"},
		"of a flood":     {"daemon daemon deaf;hang", "await 3", "say x", "flood"},
		"closing output": {"daemon daemon deaf;hang", "await 3", "say x", "close", "hang"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, script...)
			r := &recorder{}
			cancel, wait := w.begin(helloStream, r)
			if name == "left behind" {
				wantEnd(t, wait(), adapter.DispatchedYes, "")
			} else {
				await(t, "all processes are there", func() bool {
					return strings.Contains(r.text(), `"content"`)
				})
				cancel()
				wantEnd(t, wait(), adapter.DispatchedYes, adapter.CodeCanceled)
			}
			w.isClean()
		})
	}
}

func TestDaemonsDoNotOutliveANodeThatIsKilled(t *testing.T) {
	pids, scratch := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command(self, playNode, pids, scratch, "daemon daemon deaf;hang", "deaf", "hang")
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "all processes are there", func() bool { return len(processesIn(pids)) == 3 })
	_ = node.Process.Kill()
	_ = node.Wait()
	await(t, "all are gone", func() bool {
		for _, pid := range processesIn(pids) {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// When the keeper itself is killed, the kernel ends the command, and the mark in their environment finds the others.
func TestKillOfTheKeeperEndsTheRun(t *testing.T) {
	w := newWorld(t, nil, "child deaf,hang", "child child hang,hang", "await 4", "say x", "deaf", "hang")
	r := &recorder{}
	_, wait := w.begin(helloStream, r)
	await(t, "all processes are there", func() bool {
		return strings.Contains(r.text(), `"content"`) && len(w.processes()) == 4
	})
	if err := syscall.Kill(w.parent(w.command()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, wait(), adapter.DispatchedYes, adapter.CodeBackendBroke)
	w.isClean()
}

// A fork bomb is caught: its processes are stopped before they are killed.
func TestProcessesThatKeepForkingAreEnded(t *testing.T) {
	w := newWorld(t, nil, "daemon chain", "say x", "hang")
	r := &recorder{}
	cancel, wait := w.begin(helloStream, r)
	await(t, "it has forked a few times", func() bool { return len(w.processes()) > 3 })
	cancel()
	wantEnd(t, wait(), adapter.DispatchedYes, adapter.CodeCanceled)
	w.isClean()
}
