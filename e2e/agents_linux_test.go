package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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
	await(t, "all commands run", func() bool {
		left, _ := os.ReadDir(filepath.Join(a.dir, "runs"))
		return len(left) == runs && readers(gate) == runs
	})
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // lets all of them go on, to the end of an empty file
	if err != nil {
		t.Fatal(err)
	}
	_ = open.Close()
	for _, f := range flights {
		got := f.wait(t)
		got.want(t, 200)
	}
	a.awaitGone()
	a.awaitIdle()
}

// readers counts the commands that read a file.
func readers(path string) (n int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, e := range entries {
		if b, err := os.ReadFile(e); err == nil && string(b) == "cat\x00"+path+"\x00" || strings.HasSuffix(string(b), "/cat\x00"+path+"\x00") {
			n++
		}
	}
	return n
}
