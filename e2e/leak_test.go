package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"iop/e2e/backend"
)

// TestNothingLeaks: after a storm of requests that end in every way, the daemons have no more goroutines and open files
// than before it.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	r := dice(t)
	b := newBackend(t, backend.Options{FailEvery: 7, Default: backend.Plan{Tokens: 3, Pace: 200 * time.Microsecond}})
	b.SetFor("drops", backend.Plan{Drop: backend.AfterTokens, At: 1})
	l := shared(b, 4)
	l.queue = 8
	w := newWorld(t, l)
	storm := func() {
		crowd := newCrowd(w, r.Uint64(), 16)
		for i := range 150 {
			w.ask(ask{tag: "drops", stream: i%2 == 0})
			w.ask(ask{model: "nobody"})
			w.ask(ask{body: []byte("{")})
		}
		crowd.stop()
		w.awaitIdle()
	}
	storm() // what is made once, such as pools of connections, is made now
	edge, node := w.edge.process, w.nodes["n1"]
	before := w.metric("go_goroutines")
	files := map[*process]int{edge: openFiles(t, edge), node: openFiles(t, node)}
	storm()
	storm()
	if before > 0 {
		await(t, fmt.Sprintf("edged has about %v goroutines again", before), func() bool { return w.metric("go_goroutines") <= before+10 })
	}
	for p, n := range files {
		await(t, fmt.Sprintf("%s has about %d open files again", p.name, n), func() bool { return openFiles(t, p) <= n+10 })
	}
}

// openFiles counts a process's descriptors; 0 where /proc does not tell.
func openFiles(t testing.TB, p *process) int {
	t.Helper()
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 && !p.running() {
		t.Fatal(os.ErrProcessDone)
	}
	return len(all)
}
