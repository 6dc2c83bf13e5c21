//go:build !windows

package top

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"iop/cli/top/terminal"
)

var update = flag.Bool("update", false, "rewrite the expected screens")

// TestMain wants that nothing runs on, but for one thing: bubbletea's reader, if a key or an answer of the terminal comes just
// while the view ends, stays with it in its hands. iopctl ends then.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).sendEvents"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), got); diff != "" {
		t.Errorf("%s is other than expected (rewrite with -update):\n%s", path, diff)
	}
}

// TestScreens: each list, help and explanation as they look on 80x24, and two on other sizes.
func TestScreens(t *testing.T) {
	r := start(t, 80, 24, busyFrame())
	golden(t, "providers", r.Await("PROVIDER", "wide", "? help"))
	r.Keys("\t")
	golden(t, "queue", r.Await("PLACE", "req-b4"))
	r.Keys("3")
	golden(t, "leases", r.Await("LEASE", "req-a2"))
	r.Keys("?")
	golden(t, "help", r.Await("any key: back"))
	r.Keys("?")
	r.Await("req-a2")
	r.Keys(terminal.KeyEnter)
	golden(t, "story", r.Await("It has two lines."))
	r.Keys(terminal.KeyEsc)
	r.Await("req-a2")
	r.Keys("2")
	r.Await("req-b4")
	r.Size(60, 20)
	golden(t, "queue-60x20", r.AwaitThat("60 columns", func(s string) bool {
		return strings.Contains(s, "req-b4") && !strings.Contains(s, "CLASS") && strings.Count(s, "\n") == 19
	}))
	r.Size(200, 60)
	golden(t, "queue-200x60", r.Await("PRINCIPAL", "gpu-1 has no long slot free"))
	r.Size(30, 8)
	r.Await("too small")
	r.Size(80, 24)
	golden(t, "queue", r.Await("PLACE", "req-b4", "CLASS", "? help"))
	r.Keys("q")
	if err := r.ended(); err != nil {
		t.Error(err)
	}
}
