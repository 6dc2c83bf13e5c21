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
)

var update = flag.Bool("update", false, "rewrite the expected screens")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	golden(t, "providers", r.await("PROVIDER", "wide", "? help"))
	r.keys("\t")
	golden(t, "queue", r.await("PLACE", "req-b4"))
	r.keys("3")
	golden(t, "leases", r.await("LEASE", "req-a2"))
	r.keys("?")
	golden(t, "help", r.await("any key: back"))
	r.keys("?")
	r.await("req-a2")
	r.keys(keyEnter)
	golden(t, "story", r.await("It has two lines."))
	r.keys(keyEsc)
	r.await("req-a2")
	r.keys("2")
	r.await("req-b4")
	r.size(60, 20)
	golden(t, "queue-60x20", r.awaitThat("60 columns", func(s string) bool {
		return strings.Contains(s, "req-b4") && !strings.Contains(s, "CLASS") && strings.Count(s, "\n") == 19
	}))
	r.size(200, 60)
	golden(t, "queue-200x60", r.await("PRINCIPAL", "gpu-1 has no long slot free"))
	r.size(30, 8)
	r.await("too small")
	r.size(80, 24)
	golden(t, "queue", r.await("PLACE", "req-b4", "CLASS", "? help"))
	r.keys("q")
	if err := r.ended(); err != nil {
		t.Error(err)
	}
}
