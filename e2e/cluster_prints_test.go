package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// print is what a process has of its machine.
type print struct{ anonymous, heap, goroutines, files int }

func (p print) String() string {
	return fmt.Sprintf("%d MiB anonymous, %d MiB heap, %d goroutines, %d files", p.anonymous>>20, p.heap>>20, p.goroutines, p.files)
}

// prints of all replicas at rest.
func (x *rush) prints() (out []print) {
	x.c.t.Helper()
	for i := range x.c.replicas {
		out = append(out, x.print(i))
	}
	return out
}

func (x *rush) print(i int) print {
	x.c.t.Helper()
	w := x.c.at(i)
	return print{
		anonymous: anonymous(w.edge.process), heap: int(w.metric("go_memstats_heap_inuse_bytes")),
		goroutines: int(w.metric("go_goroutines")), files: openFiles(x.c.t, w.edge.process),
	}
}

// anonymous is a process's memory that no file stands behind, in bytes; 0 where /proc does not tell.
func anonymous(p *process) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(v)[0])
			return kb << 10
		}
	}
	return 0
}

// likeBefore waits until every replica has what it had before, and some for what grows with the history.
func (x *rush) likeBefore(before []print) {
	t := x.c.t
	t.Helper()
	for i, b := range before {
		var now print
		await(t, fmt.Sprintf("%s is back to %v", x.c.id(i), b), func() bool {
			now = x.print(i)
			return now.goroutines <= b.goroutines+15 && now.files <= b.files+15 && now.anonymous <= 2*b.anonymous+32<<20
		})
		t.Logf("%s: before %v; after %v", x.c.id(i), b, now)
	}
}
